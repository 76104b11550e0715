"""What tests of acts on dead messages share: people, the recorded failures in the archive, and how to look at them."""

from typing import Any

from django.contrib.auth.models import Permission, User

from pgqueue_admin.archive import store
from pgqueue_admin.archive.model import ArchivedMessage, Filter
from pgqueue_admin.records.source import source

REFUSED = "Shop.Billing.PaymentGateway+RefusedException"
BILLING = '"public"."Billing"'
OPERATOR = ("retry_message", "discard_message")


def person(name: str, *permissions: str, **more: Any) -> User:
    user = User.objects.create_user(name, password="secret", **more)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)


def dead(number: int = 1, **filter: Any) -> list[ArchivedMessage]:
    with source().reading() as connection:
        return store.page(connection, Filter(**filter), limit=number).messages


def archived(archive_id: int) -> ArchivedMessage:
    with source().reading() as connection:
        message = store.get(connection, archive_id)
    assert message
    return message


def number_in(address: str) -> int:
    with source().reading() as connection:
        return int(connection.value(f"select count(*) from {address}"))


def events_of(operation: int) -> int:
    with source().reading() as connection:
        asked = {"operation": operation}
        return int(
            connection.value("select count(*) from messages.archive_event where operation = %(operation)s", asked)
        )
