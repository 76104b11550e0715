"""What a database is asked as a participant of a two-phase commit: its part is prepared, then ended as was decided."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.connection import Session, TwoPhaseSession
from pgqueue_admin.dialects.table_fault import TableFault


class Branch(NamedTuple):
    """One database's part of a transaction over several. The names of prepared transactions are made of it."""

    coordinator: str  # 32 hexadecimal digits: whose decision ends it
    id: str  # 32 hexadecimal digits: of the whole transaction, of one attempt alone
    database: str  # a name of at most 31 of a-z, 0-9 and _: two names may mean one server


class Prepared(NamedTuple):
    """One that is prepared and not ended, as its server tells of it. None: the server does not tell.

    ``name``: as the server lists it; ``coordinator``, ``id``: as ``Branch`` has them. ``tables``: schema.table where it
    has locks; ``waiting``: sessions that wait for its end, or for a table that it has locked. ``is_here``: in the
    session's database. ``is_shared``: tables and waiting are those of all that are prepared there together.
    """

    name: str
    coordinator: str
    id: str
    since: datetime | None
    owner: str | None
    database: str | None
    tables: tuple[str, ...] | None
    waiting: int | None
    is_here: bool
    is_shared: bool = False


class TwoPhase(Protocol):
    """A prepared transaction keeps its locks, and outlives its session and its server."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        """What keeps this server from preparing, or this role from seeing what was prepared."""

    def begin(self, session: TwoPhaseSession, branch: Branch) -> None:
        """A transaction of this session. Until it is prepared it ends with its session."""

    def prepare(self, session: TwoPhaseSession, branch: Branch) -> None:
        """All that a commit could refuse is refused here. Raises NotifyCannotBePrepared and other DatabaseErrors."""

    def commit(self, session: TwoPhaseSession, branch: Branch) -> bool:
        """In any session outside a transaction. False: there is none such any more, or its session still has it."""

    def rollback(self, session: TwoPhaseSession, branch: Branch) -> bool:
        """As ``commit``."""

    def prepared(self, session: Session, coordinator: str) -> list[Branch]:
        """Which of this coordinator are prepared in the session's database."""

    def in_doubt(self, session: Session, most: int) -> list[Prepared]:
        """Of whichever coordinator, on the session's server; the oldest first, where it says since when."""
