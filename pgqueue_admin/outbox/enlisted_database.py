"""A database that handlers enlist by name: it commits when the outbox does (implements transport.ports)."""

from collections.abc import Callable

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.dialects.connection import Session, TwoPhaseSession
from pgqueue_admin.dialects.outbox_store import Isolation
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.dialects.two_phase import Branch, TwoPhase
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.sessions.session_opening import Opening


class EnlistedDatabase:
    """``coordinator``: asks who decides, whose name is a part of each prepared transaction's."""

    name: str

    def __init__(self, name: str, dsn: str, client: Client, isolation: Isolation, coordinator: Callable[[], str]):
        dialect = dialect_for(dsn)
        assert dialect.two_phase_commit, "the settings were refused before"
        self.name, self._isolation, self._coordinator = name, isolation, coordinator
        self._two_phase: TwoPhase = dialect.two_phase_commit
        self.opening = Opening(dialect, dsn, client.name, client.answer_seconds)

    def connect(self) -> Connection:
        return self.opening.short(for_handlers=True, isolation=self._isolation)

    def begin(self, session: TwoPhaseSession, id: str) -> None:
        self._two_phase.begin(session, self._branch(id))

    def prepare(self, session: TwoPhaseSession, id: str) -> None:
        self._two_phase.prepare(session, self._branch(id))

    def commit(self, session: TwoPhaseSession, id: str) -> bool:
        return self._two_phase.commit(session, self._branch(id))

    def roll_back(self, session: TwoPhaseSession, id: str) -> bool:
        return self._two_phase.roll_back(session, self._branch(id))

    def prepared(self, session: Session) -> list[str]:
        """Ids of what this coordinator has in it, enlisted by this name."""
        found = self._two_phase.prepared(session, self._coordinator())
        return [branch.id for branch in found if branch.database == self.name]

    def faults(self) -> list[TableFault]:
        """Raises DatabaseDown."""
        with self.opening.ours() as session:
            found = list(self._two_phase.faults(session))
        return [fault._replace(said=f"{self.name}, enlisted by the outbox: {fault.said}") for fault in found]

    def _branch(self, id: str) -> Branch:
        return Branch(self._coordinator(), id, self.name)
