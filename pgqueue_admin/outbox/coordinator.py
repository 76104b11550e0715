"""Decides over transactions of several databases, and ends what a crash left prepared.

Each enlisted database is prepared; then the outbox's own transaction commits, with a row that says so: the decision.
What is prepared and has no such row is rolled back once nobody can write one any more (presumed abort).
"""

import logging
from collections.abc import Callable, Collection, Sequence

from pgqueue_admin.dialects import Address, Connection, Dialect, dialect_for
from pgqueue_admin.dialects.connection import Command, Session, TwoPhaseSession
from pgqueue_admin.dialects.decision_store import DECISIONS
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, NotPermitted
from pgqueue_admin.dialects.outbox_store import Isolation
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.dialects.two_phase import Branch, TwoPhase
from pgqueue_admin.outbox.settings import OutboxSettings
from pgqueue_admin.transport import checks
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.sessions.session_opening import Opening


# A database that handlers enlist by name: it commits when the outbox does (implements transport.ports).
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

    def rollback(self, session: TwoPhaseSession, id: str) -> bool:
        return self._two_phase.rollback(session, self._branch(id))

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


log = logging.getLogger("pgqueue_admin.outbox")


class Coordinator:
    """Of one outbox table: its table of decisions lies beside it."""

    databases: dict[str, EnlistedDatabase]

    def __init__(self, settings: OutboxSettings, client: Client, dialect: Dialect, outbox: Address, opening: Opening):
        self._decisions = dialect.decision_store(Address(outbox.schema, outbox.table + DECISIONS))
        self._opening = opening
        self._known_identity = ""
        self.databases = {
            name: EnlistedDatabase(name, dsn, client, settings.isolation_level, self._identity)
            for name, dsn in settings.databases.items()
        }

    def _identity(self) -> str:
        if not self._known_identity:
            with self._opening.ours() as session:
                self._known_identity = self._decisions.identity(session)
        return self._known_identity

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        return self._decisions.deciding(id, databases)

    def create(self, session: Connection) -> None:
        self._decisions.create(session)

    def check(self, session: Connection) -> None:
        """``session``: the outbox's. An enlisted database that is down is waited for. Raises QueueUnfit."""
        found = list(self._decisions.faults(session))
        for database in self.databases.values():
            try:
                found += database.faults()
            except DatabaseDown as error:
                log.warning("Messages wait for %s, enlisted by the outbox: %s", database.name, error)
        checks.insist(found)

    def recover(self, session: Connection) -> bool:
        """End what is in doubt. ``session``: the outbox's. Whether something is left that can be ended soon.

        Decisions are read before what is prepared: what was decided then, and is not prepared any more, is committed.
        """
        decided = {each.id: each.databases for each in self._decisions.decided(session)}
        left = {name: self._recovered(session, database, decided) for name, database in self.databases.items()}
        self._forget(session, decided, left)
        return any(left.values())

    def _recovered(self, session: Connection, database: EnlistedDatabase, decided: Collection[str]) -> set[str] | None:
        """Ids that stay prepared; None: the database cannot be asked."""
        try:
            with database.opening.ours() as there:
                return {
                    id for id in database.prepared(there) if not self._is_ended(session, database, there, id, decided)
                }
        except DatabaseError as error:
            log.warning("What is prepared in %s, enlisted by the outbox, cannot be ended now: %s", database.name, error)
            return None

    def _is_ended(
        self, session: Connection, database: EnlistedDatabase, there: Connection, id: str, decided: Collection[str]
    ) -> bool:
        commits = id in decided or self._decisions.outcome(session, id)
        if commits is None:
            return False
        end = database.commit if commits else database.rollback
        try:
            ended = end(there, id)
        except NotPermitted as error:  # prepared by another role: it stays, and so does its decision
            log.warning("A transaction in doubt in %s is not ours to end (%s): %s", database.name, id, error)
            return False
        if ended:
            said = "committed, as was decided" if commits else "rolled back: it was never decided"
            log.warning("A transaction in doubt in %s is %s (%s).", database.name, said, id)
        return ended

    def _forget(
        self, session: Connection, decided: dict[str, tuple[str, ...]], left: dict[str, set[str] | None]
    ) -> None:
        """A decision whose every database was looked into and has nothing of it any more."""
        over = [id for id, names in decided.items() if all(_is_free(left.get(name), id) for name in names)]
        if over:
            self._decisions.forget(session, over)
        if unknown := {name for names in decided.values() for name in names} - set(self.databases):
            said = "Transactions were decided over %s, which this outbox has no more: they stay in doubt until it has."
            log.warning(said, ", ".join(sorted(unknown)))


def _is_free(left: set[str] | None, id: str) -> bool:
    return left is not None and id not in left
