"""Loads the signed-in user together with the queue scopes of their groups, in Django's one statement."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from pgqueue_admin.services import queue_access


class PersonBackend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        people = User._default_manager.annotate(scopes_of_groups=queue_access.brought_along())
        person = people.filter(pk=user_id).first()
        return person if person is not None and self.user_can_authenticate(person) else None
