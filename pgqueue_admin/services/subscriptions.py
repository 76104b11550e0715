"""Ends a subscription by hand, or restores it: exactly the row that the person saw."""

from typing import Any

from pgqueue_admin.archive import foreign_code, held_row
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import lies_elsewhere, queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.subscriptions import SubscriptionRow
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

NOTHING = "Nothing was unsubscribed"
NOT_AGAIN = "Nothing was subscribed again"


def unsubscribe(row: SubscriptionRow, person: Any, origin: str, reason: str = "") -> AuditEntry:
    """Delete the row if it is still as seen; its audit entry can undo it. Raises OperationRefused, or
    OutcomeUnknown.
    """
    if refusal := refusal_for(person, "unsubscribe"):
        raise OperationNotAllowed(f"{NOTHING}: {refusal}.")
    was = {"endpoint": row.endpoint, "topic": row.topic, "queueaddress": row.queueaddress}
    table = queue_database().dialect.canonical(row.table)
    about = {"who": name_of(person), "verb": "unsubscribe", "noun": "subscription", "origin": origin, "reason": reason}
    if why := lies_elsewhere(row.table):
        raise OperationRefused(f"{NOTHING}. {why}")
    if not queue_database().allows(row.table):
        schema = row.table.schema
        raise OperationRefused(f"{NOTHING}. The schema {schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS).")
    lost: DatabaseDown | None = None
    try:
        with (
            audited(**about, subject=table[:400], before=was, after={}) as act,
            queue_database().write_session() as connection,
        ):
            try:
                _delete(connection, row.table, was)
            except DatabaseDown as error:
                lost = error
                act.note(outcome="not known")
            act.done = 1
    except DatabaseError as error:
        raise OperationRefused(f"{NOTHING}. {error}") from error
    if lost:
        raise OutcomeUnknown(f"Whether it was unsubscribed is not known. Look at the list. {lost}") from lost
    return act.entry


def subscribe_again(entry: AuditEntry, person: Any, origin: str) -> None:
    """Restore the row that an audit entry ended, unless another replaced it. Raises OperationRefused, or
    OutcomeUnknown.
    """
    if refusal := refusal_for(person, "unsubscribe"):
        raise OperationNotAllowed(f"{NOT_AGAIN}: {refusal}.")
    table = queue_database().dialect.parse_address(entry.subject)
    was = {name: str((entry.before or {}).get(name, "")) for name in ("endpoint", "topic", "queueaddress")}
    about = {"who": name_of(person), "verb": "undo", "noun": "subscription", "origin": origin}
    lost: DatabaseDown | None = None
    try:
        with (
            audited(**about, subject=entry.subject, reason=f"undoes change {entry.pk}", before={}, after=was) as act,
            queue_database().write_session() as connection,
        ):
            try:
                _put_back(connection, table, was)
            except DatabaseDown as error:
                lost = error
                act.note(outcome="not known")
            act.done = 1
    except DatabaseError as error:
        raise OperationRefused(f"{NOT_AGAIN}. {error}") from error
    if lost:
        raise OutcomeUnknown(f"Whether it was subscribed again is not known. Look at the list. {lost}") from lost


def _put_back(connection: Connection, table: Address, was: dict[str, str]) -> None:
    with connection.transaction():
        found = discovery.readable(connection, table) if queue_database().allows(table) else None
        if found is None or found.kind is not TableKind.SUBSCRIPTION:
            raise OperationRefused(f"{NOT_AGAIN}. {table.table} is no subscription table that is watched here.")
        if why := foreign_code.would_run(connection, table, foreign_code.INSERT) or _leads_nowhere(
            connection, was["queueaddress"], table
        ):
            raise OperationRefused(f"{NOT_AGAIN}. {why}")
        if connection.run(postgresql().subscription.subscribe_seen(table=table), was) != 1:
            raise OperationRefused(f"{NOT_AGAIN}. {was['endpoint']} has subscribed to it since.")


def _leads_nowhere(connection: Connection, queueaddress: str, table: Address) -> str:
    """Why the subscription leads nowhere: publishers fail if a subscriber's queue is missing."""
    try:
        queue = queue_database().dialect.parse_address(queueaddress, table.schema)
    except AddressUnreadable:
        return f"{queueaddress} is no address."
    asked = {"schemas": [queue.schema], "tables": [queue.table]}
    is_there = bool(connection.all(postgresql().subscription.present(), asked))
    return "" if is_there else f"Its queue {queueaddress} is not there, and whoever publishes would fail."


def _delete(connection: Connection, table: Address, was: dict[str, str]) -> None:
    with connection.transaction():
        found = discovery.readable(connection, table)
        if found is None or found.kind is not TableKind.SUBSCRIPTION:
            raise OperationRefused(f"{NOTHING}. {table.table} is no subscription table now.")
        held_row.hold_table(connection, table)
        if why := held_row.would_run(connection, table):
            raise OperationRefused(f"{NOTHING}. {why}")
        if connection.run(postgresql().subscription.unsubscribe_seen(table=table), was) != 1:
            raise OperationRefused(f"{NOTHING}. That subscription is no longer there, or has another queue.")
