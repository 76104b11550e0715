"""Protocol of the outbox: a record of each handled message with its pending sends."""

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import ClassVar, Literal, NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault

Isolation = Literal["read_committed", "repeatable_read", "serializable", "snapshot"]


class OutboxRecord(NamedTuple):
    """``operations``: JSON as text, an empty array once they are dispatched (outbox sheet 4)."""

    id: str
    dispatched: bool
    operations: str


class OutboxWork(NamedTuple):
    """``leads``: this process alone maintains the table. ``purge``, ``relay``: records to purge or dispatch exist."""

    leads: bool
    purge: bool
    relay: bool


class OutboxStore(Protocol):
    """One outbox table. Times are the server's, in UTC whatever the session's time zone is."""

    address: Address
    says_when: bool | None  # the table says when a record was written; None: not known yet
    is_durable: bool  # a commit with a record is flushed to disk, if its session can request that
    before_mark: Command | None  # first in a marking transaction: rules out serialization failures; None: not needed
    locks_gaps: ClassVar[bool]  # at serializable, finding no record blocks others from inserting it

    def create(self, session: Session) -> None:
        """Create the table and its indexes, each if missing; safe for concurrent callers."""

    def faults(self, session: Session, isolation: Isolation = "read_committed") -> Iterator[TableFault]:
        """Defects that make the table unusable; reads the catalog. ``isolation``: of its transactions; a database may
        not allow it."""

    def finding(self, message_id: str) -> Command:
        """The statement that returns an OutboxRecord, or no row."""

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        """The statement that inserts the record. ``wait``: at most, for an open transaction that inserts the same.

        Raises AlreadyExists if that committed, Deadlock if its outcome is unclear, Locked if it is still open.
        """

    def completing(self, message_id: str, operations: str) -> Command:
        """The statement that adds the operations to a record inserted before its handlers ran."""

    def marking(self, message_id: str) -> Command:
        """The statement that marks a record as dispatched. It fails if already marked: nothing may be sent twice."""

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        """Check for work by index; the session becomes leader if there is none.

        ``grace``: minimum age of undispatched records, if the table has their age.
        """

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        """Delete at most so many records dispatched more than ``keep`` ago, skipping locked ones."""

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        """Lock undispatched records except ``without``, skipping locked ones; in the caller's transaction.

        If the table has no ages, records of any age.
        """
