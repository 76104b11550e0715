"""An archived message as a row of a list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pgqueue_admin.archive import lease_retry
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console.messages.detail.summary import STATE_WORDS, address_of
from pgqueue_admin.console.messages.payload_columns import PayloadCell, PayloadColumns
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.transport.wire.type_names import short_type


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    message: ArchivedMessage
    address: Address | None
    cells: Sequence[PayloadCell] = ()
    first_ending: int | None = None  # of a lease message: the archive id of its earlier ending

    @property
    def type(self) -> str:
        return short_type(self.message.message_type) if self.message.message_type else ""

    @property
    def word(self) -> str:
        return str(STATE_WORDS.get(self.message.state, self.message.state))

    @property
    def cause(self) -> str:
        """The exception, else why it cannot be retried."""
        kind = short_type(self.message.exception_type) if self.message.exception_type else ""
        said = " ".join((self.message.exception_message or "").split())
        return ": ".join(filter(None, (kind, said))) or self.message.retry_blocked_reason or ""

    @property
    def seconds_until_dead(self) -> float | None:
        sent_at, died_at = self.message.sent_at, self.message.died_at
        if sent_at is None or Beyond in (type(sent_at), type(died_at)):
            return None
        return float((died_at - sent_at).total_seconds())


def with_columns(rows: Sequence[ArchiveRow], columns: PayloadColumns) -> list[ArchiveRow]:
    return [replace(each, cells=columns.of(each.message.id)) for each in rows]


def rows(connection: Connection, messages: Iterable[ArchivedMessage], access: ContentAccess) -> list[ArchiveRow]:
    """Raises DatabaseError."""
    listed = list(messages)
    firsts = lease_retry.first_endings(connection, [each.id for each in listed if each.kind == "lease"])
    return [row(each, access, firsts.get(each.id)) for each in listed]


def row(message: ArchivedMessage, access: ContentAccess, first_ending: int | None = None) -> ArchiveRow:
    return ArchiveRow(access.archived(message), address_of(message.queue), first_ending=first_ending)
