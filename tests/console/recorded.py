"""The recorded database as pages see it: users, and failures in the archive."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection

ERRORS = Address("public", "error")
REFUSED = "Shop.Billing.PaymentGateway+RefusedException"


class Recorded:
    def __init__(self, connection: Connection, dsn: str):
        self.connection, self.dsn = connection, dsn

    @cached_property
    def operator(self) -> Client:
        return self.signed_in("ana", Permission.objects.filter(content_type__app_label="pgqueue"))

    @cached_property
    def second(self) -> Client:
        return self.signed_in("tomas", Permission.objects.filter(content_type__app_label="pgqueue"))

    @cached_property
    def viewer(self) -> Client:
        return self.signed_in("ivo", Permission.objects.filter(codename="read_message"))

    @cached_property
    def counter(self) -> Client:
        """A user without the right to read messages' contents."""
        return self.signed_in("eva", [])

    def signed_in(self, name: str, permissions: Iterable[Permission]) -> Client:
        person = User.objects.create_user(name, password="of the tests")
        person.user_permissions.set(permissions)
        client = Client()
        client.force_login(person)
        return client

    def dead(self, limit: int = 10, **asked: Any) -> list[int]:
        """Archive ids, newest first."""
        return [each.id for each in store.page(self.connection, ArchiveFilter(**asked), limit=limit).messages]

    def refused_card(self) -> int:
        return self.dead(1, exception=REFUSED)[0]

    def state(self, archive_id: int) -> str:
        message = store.get(self.connection, archive_id)
        assert message is not None
        return str(message.state)

    def rows(self, table: str) -> int:
        return int(self.connection.value(f'select count(*) from "{table}"'))
