"""Protocol of a two-phase commit's participant: its branch is prepared, then ended as decided."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.connection import Session, TwoPhaseSession
from pgqueue_admin.dialects.table_fault import TableFault


class Branch(NamedTuple):
    """One database's part of a distributed transaction. It forms the name of the prepared transaction."""

    coordinator: str  # 32 hexadecimal digits: the coordinator that decides
    id: str  # 32 hexadecimal digits: of one attempt of the whole transaction
    database: str  # a name of at most 31 of a-z, 0-9 and _: two names may mean one server


class Prepared(NamedTuple):
    """A transaction in doubt: prepared and not ended, as its server reports it. None: not reported.

    ``name``: as the server lists it; ``coordinator``, ``id``: as in ``Branch``. ``tables``: schema.table of its locks;
    ``waiting``: sessions that wait for its end, or for a table that it locked. ``is_here``: in the session's database.
    ``is_shared``: tables and waiting are those of all transactions prepared there together.
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
        """Why this server cannot prepare, or this role cannot see prepared transactions."""

    def begin(self, session: TwoPhaseSession, branch: Branch) -> None:
        """Begin a transaction of this session. Until prepared, it ends with its session."""

    def prepare(self, session: TwoPhaseSession, branch: Branch) -> None:
        """Prepare: every error of a commit occurs here. Raises NotifyCannotBePrepared and other DatabaseErrors."""

    def commit(self, session: TwoPhaseSession, branch: Branch) -> bool:
        """Commit, in any session outside a transaction. False: it is gone, or its own session still has it."""

    def rollback(self, session: TwoPhaseSession, branch: Branch) -> bool:
        """Roll back, as ``commit``."""

    def prepared(self, session: Session, coordinator: str) -> list[Branch]:
        """Prepared branches of this coordinator in the session's database."""

    def in_doubt(self, session: Session, most: int) -> list[Prepared]:
        """Prepared transactions of any coordinator on the session's server; oldest first, if their age is known."""
