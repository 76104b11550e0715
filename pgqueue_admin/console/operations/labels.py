"""Labels of acts on messages: before, after, and when refused."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from pgqueue_admin.archive.dead_messages import at_utc
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import names, numbers, times
from pgqueue_admin.formatting.audit_verbs import past
from pgqueue_admin.formatting.confirmations import VERBS
from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import errors

LEASE_QUEUE = "lease queue"  # original clients name no queue
STILL = {
    "retry": "still dead where they were",
    "discard": "still dead",
    "restore": "still discarded",
    "call back": "still sent",
    "purge": "still there",
}
_BEFORE_QUEUE = {"retry": "to", "call back": "from"}

_A_MOMENT = timedelta(seconds=10)
FINISHING = "Cancelled; messages in hand are finished first"


def what(operation: Operation, queues: Iterable[str] | None = None) -> str:
    """``Retry 1,284 messages to Billing``. ``queues``: its destinations under present rules; None: the stored ones."""
    where = _where(operation, operation.queues if queues is None else queues)
    return f"{_verb(operation)} {messages(operation.count)} {where}".strip()


def _verb(operation: Operation) -> str:
    if operation.restores:
        return "Restore, edit and retry" if operation.edit else "Restore and retry"
    return "Edit and retry" if operation.edit else VERBS[operation.kind]


def button(operation: Operation, environment: str) -> str:
    """``Retry 1,284 in production``."""
    return f"{_verb(operation)} {operation.count:,} in {environment or 'unnamed'}"


def when_received(operation: Operation, environment: str, queues: Iterable[str]) -> str:
    """``Retry 564 in production when Orders receives``."""
    said = list(tables(queues).values())
    who = f"{said[0]} receives" if len(said) == 1 else "somebody receives in each queue"
    return f"{button(operation, environment)} when {who}"


def cancel_question(operation: Operation, environment: str) -> str:
    return f"Cancel the rest of operation {operation.pk}, {what(operation)}, in {environment or 'unnamed'}?"


def messages(count: int) -> str:
    return numbers.pluralize(count, "message")


def _where(operation: Operation, queues: Iterable[str]) -> str:
    said = list(tables(queues).values())
    return f"{_BEFORE_QUEUE.get(operation.kind, 'of')} {names.listed(said)}" if said else ""


def tables(addresses: Iterable[str]) -> dict[str, str]:
    """The name of each queue: with its schema if another schema has a table of that name, too."""
    of = {each: table_of(each) or LEASE_QUEUE for each in addresses}
    times_said = Counter(of.values())
    return {each: table if times_said[table] == 1 else _with_schema(each) for each, table in of.items()}


def _with_schema(canonical: str) -> str:
    """Schema and table; the text unchanged if it is no address, since the lease queue has none."""
    try:
        address = queue_database().dialect.parse_address(canonical)
    except AddressUnreadable:
        return canonical or LEASE_QUEUE
    return f"{address.schema}.{address.table}"


def table_of(canonical: str) -> str:
    """The table's name out of ``"public"."Billing"``."""
    return canonical.rpartition('."')[2].removesuffix('"').replace('""', '"') or canonical


def result(kind: str, outcome: Outcome) -> str:
    """The outcome of one message, and its operation."""
    where = f" to {table_of(outcome.target)}" if outcome.target else ""
    number = f" Operation {outcome.operation}." if outcome.operation else ""
    if outcome.result == "done":
        return f"1 message {past(kind)}{where}.{number}"
    why = outcome.why or "It was not as it was when you looked."
    return f"Nothing was {past(kind)}. {in_zone(why, outcome.previous_at)}{_since(outcome.previous_at)}"


def _since(instant: datetime | None) -> str:
    if instant is None or times.beyond(instant):
        return ""
    now = database_clock.now()
    return f" That was {'a moment ago' if now - instant < _A_MOMENT else times.ago(instant, now)}."


def in_zone(why: str, when: datetime | None) -> str:
    """Outcomes are stored with their time in UTC: show it in the person's zone, like all times of a page."""
    return why.replace(at_utc(when), errors.at(when)) if when else why


def ended(operation: Operation, succeeded: int = 0, dead_again: int = 0) -> str:
    """All classes that are not zero: ``412 succeeded, 6 dead again, 866 not sent and still dead where they were.``"""
    left = operation.count - operation.done - operation.skipped - operation.failed
    still = STILL["restore" if operation.restores else operation.kind]
    classes = [
        (succeeded, "succeeded"),
        (dead_again, "dead again"),
        (operation.done - succeeded - dead_again, past(operation.kind)),
        (operation.skipped, "skipped"),
        (operation.failed, f"failed and {still}"),
        (left, f"not touched and {still}"),
    ]
    return ", ".join(f"{count:,} {word}" for count, word in classes if count > 0) or "Nothing was in the set"
