"""What the outbox asks of a database: a record of each handled message, and of what it is still to send."""

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
    """``leads``: no other process keeps this table. Whether there is anything to purge, and anything to dispatch."""

    leads: bool
    purge: bool
    relay: bool


class OutboxStore(Protocol):
    """One outbox table. Times are the server's, in UTC whatever the session's zone is."""

    address: Address
    says_when: bool | None  # a record was written; None: not asked yet
    is_durable: bool  # a commit with a record is on disk when it answers, where its session can ask for that
    before_mark: Command | None  # begins a transaction that no other may refuse once it has marked; None: each is one
    locks_gaps: ClassVar[bool]  # to find no record at serializable keeps others from inserting it

    def create(self, session: Session) -> None:
        """The table and its indexes, each where it is missing; safe beside others who do the same."""

    def faults(self, session: Session, isolation: Isolation = "read_committed") -> Iterator[TableFault]:
        """What keeps it from being one; reads the catalog. ``isolation``: of its transactions, which a database may be
        set not to have."""

    def finding(self, message_id: str) -> Command:
        """Answers with an OutboxRecord, or with no row."""

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        """Inserts the record. ``wait``: for how long at most for somebody who inserts the same and has not ended.

        Raises AlreadyExists where they have committed, Deadlock where that cannot be said, Locked where they go on.
        """

    def completing(self, message_id: str, operations: str) -> Command:
        """Puts the operations into a record that was inserted before its handlers ran."""

    def marking(self, message_id: str) -> Command:
        """Marks a record as dispatched. The statement fails where it was marked already: nothing may be sent twice."""

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        """One indexed look; the session leads from then on where nobody else does.

        ``grace``: how old what is undispatched must be, where the table says how old it is.
        """

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        """Delete so many records that were dispatched longer ago, past those that somebody else has locked."""

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        """Lock undispatched records but these, past those that somebody else has locked; in the caller's transaction.

        Of a table that does not say how old its records are, all.
        """
