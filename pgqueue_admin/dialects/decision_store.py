"""Store of a coordinator's decisions to commit distributed transactions (presumed abort: no row, no commit)."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault

DECISIONS = "_Decision"  # suffix of the outbox table's name
COORDINATOR = "coordinator"  # the id of the row with this coordinator's identity


class NeverDecided(Exception):
    """Rolls back the row inserted to find that out."""


class Decision(NamedTuple):
    """``databases``: names of those whose prepared transactions must be committed."""

    id: str
    databases: tuple[str, ...]


class DecisionStore(Protocol):
    """One table, beside the outbox's: a decision commits together with the record of the message."""

    address: Address

    def create(self, session: Session) -> None:
        """Create the table if missing; safe for concurrent callers."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        """Defects that make the table unusable; reads the catalog."""

    def identity(self, session: Session) -> str:
        """32 hexadecimal digits, constant for the table's life. Branches with another identity are not ours."""

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        """The statement that inserts a decision, valid once committed. Execute it before preparing under this id."""

    def decided(self, session: Session) -> list[Decision]:
        """All decisions not forgotten."""

    def outcome(self, session: Session, id: str) -> bool | None:
        """Decision on a prepared transaction. False: it ended without one. None: its coordinator still works on it.

        Inserting a decision locks its key until that transaction ends; so the answer needs no timeout.
        """

    def forget(self, session: Session, ids: Collection[str]) -> None:
        """Delete decisions of which nothing is prepared any more."""
