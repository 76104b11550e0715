"""What another database is asked where a message goes from the first into it, or back: two transactions, one act."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session

CommitState = Literal["committed", "not_committed", "in_progress", "not_known"]


class CommitOutcome(NamedTuple):
    """``why``: a sentence, where nobody can be told any more."""

    state: CommitState
    why: str = ""


class TakenRow(NamedTuple):
    """A row that is held until the transaction ends. ``part`` and ``place`` say where it lies meanwhile."""

    part: int
    place: str
    id: UUID
    expires: datetime | None  # UTC without a zone, as the table has it
    headers: str
    seq: int


class CrossingStore(Protocol):
    """Called inside a transaction of the session, except ``fault``, ``here``, ``pin``, ``commit_outcome``, ``forget``.
    ``asked`` needs no session."""

    def fault(self, session: Session) -> str:
        """Why it could not tell afterwards what became of a transaction, with what mends that; empty: it can."""

    def here(self, session: Session) -> str:
        """Which database this is: what was switched on for one is not for another that answers in its place."""

    def mark(self, session: Session) -> str:
        """The key by which ``commit_outcome`` finds this transaction. A crash does not undo a committed one."""

    def pin(self, session: Session) -> None:
        """In another session of that database, when all is written: from then on no crash gives the mark to others."""

    def asked(self, mark: str) -> str:
        """What ``commit_outcome`` asks, in words, for whoever looks there by hand."""

    def commit_outcome(self, session: Session, mark: str) -> CommitOutcome:
        """What became of it. *not_committed* is for ever. Outside of that transaction."""

    def forget(self, session: Session, mark: str) -> None:
        """It will be asked no more."""

    def put(self, session: Session, queue: Address, row_id: UUID, headers: str, body: bytes) -> int:
        """Insert one that never expires; how many rows the table has taken."""

    def take(self, session: Session, queue: Address, limit: int, most: int) -> list[TakenRow]:
        """Hold rows that nobody has, the lowest first: of so many bytes, and one in any case."""

    def body(self, session: Session, queue: Address, row: TakenRow) -> bytes | None:
        """Of one that is held."""

    def remove(self, session: Session, queue: Address, rows: Sequence[TakenRow]) -> int:
        """Delete those that are held; how many."""
