"""Coordinates transactions over several databases, and ends those that a crash left prepared.

Each enlisted database is prepared; then the outbox's own transaction commits with a row that is the decision. A
prepared transaction without that row is rolled back once nobody can write it any more (presumed abort).
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


# A database that handlers enlist by name: it commits with the outbox (implements transport.ports).
class EnlistedDatabase:
    """``coordinator``: returns the coordinator's identity, part of each prepared transaction's name."""

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
        """Ids that this coordinator has prepared in it, enlisted by this name."""
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
    """Of one outbox table; its decision table lies beside it."""

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
        """``session``: the outbox's. Logs enlisted databases that are down; messages wait for them. Raises
        QueueUnfit."""
        found = list(self._decisions.faults(session))
        for database in self.databases.values():
            try:
                found += database.faults()
            except DatabaseDown as error:
                log.warning("Messages wait for %s, enlisted by the outbox: %s", database.name, error)
        checks.insist(found)

    def recover(self, session: Connection) -> bool:
        """End transactions in doubt. ``session``: the outbox's. Return whether any are left that can soon be ended.

        Decisions are read before prepared transactions: one that was decided and is no longer prepared is committed.
        """
        decided = {each.id: each.databases for each in self._decisions.decided(session)}
        left = {name: self._recovered(session, database, decided) for name, database in self.databases.items()}
        self._forget(session, decided, left)
        return any(left.values())

    def _recovered(self, session: Connection, database: EnlistedDatabase, decided: Collection[str]) -> set[str] | None:
        """Ids that stay prepared; None if the database cannot be queried."""
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
        except NotPermitted as error:  # prepared by another role: it and its decision stay
            log.warning("A transaction in doubt in %s is not ours to end (%s): %s", database.name, id, error)
            return False
        if ended:
            said = "committed, as was decided" if commits else "rolled back: it was never decided"
            log.warning("A transaction in doubt in %s is %s (%s).", database.name, said, id)
        return ended

    def _forget(
        self, session: Connection, decided: dict[str, tuple[str, ...]], left: dict[str, set[str] | None]
    ) -> None:
        """Forget decisions whose databases were all read and have none of their transactions prepared."""
        over = [id for id, names in decided.items() if all(_is_free(left.get(name), id) for name in names)]
        if over:
            self._decisions.forget(session, over)
        if unknown := {name for names in decided.values() for name in names} - set(self.databases):
            said = "Transactions were decided over %s, which this outbox has no more: they stay in doubt until it has."
            log.warning(said, ", ".join(sorted(unknown)))


def _is_free(left: set[str] | None, id: str) -> bool:
    return left is not None and id not in left
