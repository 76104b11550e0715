"""Messages of the lease queue as rows: state, holder, and the most common fields of their payloads."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components
from pgqueue_admin.console.messages import payload_columns
from pgqueue_admin.console.messages.payload_columns import PayloadCell, PayloadColumns
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.monitor.lease_messages import FIELDS, LeaseMessage
from pgqueue_admin.services.content_access import ContentAccess, Payload

MOST_FIELDS = 2  # columns


@dataclass(frozen=True, slots=True)
class LeaseRow:
    message: LeaseMessage
    cells: Sequence[PayloadCell]  # of the table's fields, in their order

    @property
    def name(self) -> str:
        return name(self.message)

    @property
    def tick(self) -> str:
        """The value of a row's checkbox: the message, and the lock that was shown."""
        return f"{self.message.id}:{self.message.seen}"

    @property
    def state(self) -> SafeString:
        return state(self.message)

    @property
    def tone(self) -> str:
        return "warn" if self.message.state == "over" else ""

    @property
    def holder(self) -> str:
        return holder(self.message)


@dataclass(frozen=True, slots=True)
class LeaseTable:
    """``fields``: names of the columns from payloads; ``columns``: set if a person may choose them."""

    fields: Sequence[str]
    rows: Sequence[LeaseRow]
    columns: PayloadColumns | None = None


def table(messages: Iterable[LeaseMessage], access: ContentAccess) -> LeaseTable:
    shown = [access.lease(each) for each in messages]
    counts = Counter(field for message in shown for field in message.fields)
    fields = [field for field, _ in counts.most_common(MOST_FIELDS)]
    return LeaseTable(fields, [LeaseRow(each, _cells(each, fields)) for each in shown])


def table_of(
    messages: Iterable[LeaseMessage], access: ContentAccess, asked: Sequence[str] | None, person: Any
) -> LeaseTable:
    """Like ``table``, with the columns that the URL names, or that this person saved for these kinds."""
    shown = [access.lease(each) for each in messages]
    if access.refusal:
        return LeaseTable([], [LeaseRow(each, []) for each in shown])
    payloads: dict[Hashable, tuple[str, Payload]] = {each.id: (each.kind or "", _payload(each)) for each in shown}
    columns = payload_columns.columns(payloads, asked, person)
    return LeaseTable(columns.names, [LeaseRow(each, columns.of(each.id)) for each in shown], columns)


def _payload(message: LeaseMessage) -> Payload:
    """A document that is no object has no fields. A large one is not read; of others, only the first fields are."""
    are_all = message.shape != "object" or 0 < len(message.fields) < FIELDS
    return Payload(message.fields, "" if are_all else "not read")


def _cells(message: LeaseMessage, fields: Sequence[str]) -> list[PayloadCell]:
    return [PayloadCell(field, message.fields.get(field, "")) for field in fields]


def name(message: LeaseMessage) -> str:
    """Its kind, otherwise the type of its document."""
    return message.kind or f"{message.shape} without a kind"


def state(message: LeaseMessage) -> SafeString:
    word, icon, css = _STATES[message.state]
    seconds = message.lock_seconds if message.is_locked else message.due_seconds
    return format_html('<span class="tag {}">{}{}</span>', css, components.icon(icon), word(seconds))


def holder(message: LeaseMessage) -> str:
    """The holder, if the row tells: an original client leaves no name, nor did ours before version 10 of the tables."""
    if not message.is_locked:
        return "nobody"
    if message.lock_holder:
        return escape_invisible.plain(message.lock_holder)
    return "a client of ours" if message.has_token else "an original client"


def _locked(seconds: float | None) -> str:
    return "locked without an end" if seconds is None else f"locked, {duration(_whole(seconds))} left"


def _over(seconds: float | None) -> str:
    return "lock is over" if seconds is None else f"lock over since {duration(_whole(-seconds))}"


def _later(seconds: float | None) -> str:
    return "released for ever" if seconds is None else f"released, due in {duration(_whole(seconds))}"


def _whole(seconds: float) -> float:
    return float(int(max(0.0, seconds)))


_STATES = {
    "waiting": (lambda seconds: "waiting", "down", ""),
    "locked": (_locked, "play", "info"),
    "over": (_over, "warn", "warn"),
    "later": (_later, "clock", ""),
}
