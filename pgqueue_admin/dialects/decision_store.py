"""Where a coordinator writes that a transaction over several databases commits (presumed abort: no row, no commit)."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault

DECISIONS = "_Decision"  # behind the outbox table's name
COORDINATOR = "coordinator"  # the id of the row that says who this coordinator is


class NeverDecided(Exception):
    """Rolls back what was inserted to find that out."""


class Decision(NamedTuple):
    """``databases``: the names whose prepared transactions are to be committed."""

    id: str
    databases: tuple[str, ...]


class DecisionStore(Protocol):
    """One table, beside the outbox's: a decision is one commit with the record of the message."""

    address: Address

    def create(self, session: Session) -> None:
        """Where it is missing; safe beside others who do the same."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        """What keeps it from being one; reads the catalog."""

    def identity(self, session: Session) -> str:
        """32 hexadecimal digits, the same for as long as the table lives: of another table are others' transactions."""

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        """Inserts a decision, which holds once its transaction commits. Before anything is prepared under this id."""

    def decided(self, session: Session) -> list[Decision]:
        """All that are not forgotten."""

    def outcome(self, session: Session, id: str) -> bool | None:
        """Of something that was found prepared. False: never decided, since its transaction is over. None: it goes on.

        Whoever inserts a decision holds its key until their transaction ends; so the answer needs no time-out.
        """

    def forget(self, session: Session, ids: Collection[str]) -> None:
        """Once nothing of them is prepared anywhere."""
