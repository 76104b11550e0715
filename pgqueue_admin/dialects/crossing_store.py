"""Store of another database for acts that move messages between it and the first: two transactions, one act."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session

CommitState = Literal["committed", "not_committed", "in_progress", "not_known"]


class CommitOutcome(NamedTuple):
    """``why``: a sentence, if the outcome can no longer be found out."""

    state: CommitState
    why: str = ""


class TakenRow(NamedTuple):
    """A row locked until the transaction ends. ``part`` and ``place`` locate it until then."""

    part: int
    place: str
    id: UUID
    expires: datetime | None  # UTC without a zone, as the table has it
    headers: str
    seq: int


class CrossingStore(Protocol):
    """Call its methods inside a transaction, except ``fault``, ``here``, ``pin``, ``commit_outcome``, ``forget``.
    ``asked`` needs no session."""

    def fault(self, session: Session) -> str:
        """Why a transaction's outcome could not be found out later, and the cure; empty if it could."""

    def here(self, session: Session) -> str:
        """Identity of this database: settings of one do not hold for another that replaced it at the same address."""

    def mark(self, session: Session) -> str:
        """The key by which ``commit_outcome`` finds this transaction. A crash does not undo a committed one."""

    def pin(self, session: Session) -> None:
        """After all is written, in another session: make sure that no crash gives the mark to another transaction."""

    def asked(self, mark: str) -> str:
        """The query of ``commit_outcome`` in words, for manual inspection."""

    def commit_outcome(self, session: Session, mark: str) -> CommitOutcome:
        """Outcome of the marked transaction; *not_committed* is final. Call it outside that transaction."""

    def forget(self, session: Session, mark: str) -> None:
        """Drop the mark: its outcome will not be queried again."""

    def put(self, session: Session, queue: Address, row_id: UUID, headers: str, body: bytes) -> int:
        """Insert a message that never expires; return the number of rows that the table accepted."""

    def take(self, session: Session, queue: Address, limit: int, most: int) -> list[TakenRow]:
        """Lock free rows, lowest seq first: at most ``most`` bytes in all, but at least one row."""

    def body(self, session: Session, queue: Address, row: TakenRow) -> bytes | None:
        """The body of a locked row."""

    def remove(self, session: Session, queue: Address, rows: Sequence[TakenRow]) -> int:
        """Delete locked rows; return how many."""
