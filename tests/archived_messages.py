"""Shared by tests of acts on dead messages: users, the recorded failures in the archive, and queries for them."""

from typing import Any

from django.contrib.auth.models import Permission, User

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter, RetriedFrom
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models.queue_database import queue_database

REFUSED = "Shop.Billing.PaymentGateway+RefusedException"
BILLING = '"public"."Billing"'
OPERATOR = ("retry_message", "discard_message")


def person(name: str, *permissions: str, **more: Any) -> User:
    user = User.objects.create_user(name, password="secret", **more)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)


def dead(number: int = 1, **filter: Any) -> list[ArchivedMessage]:
    with queue_database().read_session() as connection:
        return store.page(connection, ArchiveFilter(**filter), limit=number).messages


def archived(archive_id: int) -> ArchivedMessage:
    with queue_database().read_session() as connection:
        message = store.get(connection, archive_id)
    assert message
    return message


def succeed(connection: Connection, archive_id: int, who: str = "Billing") -> bool:
    """Mark a retry as succeeded, as its endpoint would. No endpoint of ours runs here, so the token may be missing."""
    connection.run(
        "update messages.message_archive set retry_token = coalesce(retry_token, gen_random_uuid()) where id = %(id)s",
        {"id": archive_id},
    )
    row = connection.one("select * from messages.message_archive where id = %(id)s", {"id": archive_id})
    assert row is not None
    said, queue = RetriedFrom(archive_id, row.retry_token), Address(row.target_schema, row.target_table)
    return store.succeeded(connection, said, row.message_id, queue, who)


def number_in(address: str) -> int:
    with queue_database().read_session() as connection:
        return int(connection.value(f"select count(*) from {address}"))


def events_of(operation: int) -> int:
    with queue_database().read_session() as connection:
        asked = {"operation": operation}
        return int(
            connection.value("select count(*) from messages.archive_event where operation = %(operation)s", asked)
        )
