"""Taking back what a person told of an endpoint that runs elsewhere."""

from typing import Any

from django.db import transaction

from pgqueue_admin.models import AuditEntry, Endpoint
from pgqueue_admin.services.endpoints import NoSuchEndpoint


def withdraw(name: str, person: Any, origin: str) -> None:
    """Forget a declared endpoint; one of ours is never removed here. Raises NoSuchEndpoint."""
    with transaction.atomic():
        removed, _ = Endpoint.objects.filter(name=name, ours=False).delete()
        if not removed:
            raise NoSuchEndpoint(f"Nothing was withdrawn. There is no declared endpoint named {name}.")
        who = person if isinstance(person, str) else person.get_username()
        AuditEntry.objects.create(who=who, verb="withdraw", noun="endpoint", subject=name, origin=origin)
