"""Storage transactions of a message's handlers: the outbox's, and those of other databases."""

import logging
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

from pgqueue_admin.dialects.connection import Command, TwoPhaseSession
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.transport.errors import NotEnlisted
from pgqueue_admin.transport.ports import EnlistedDatabase, Outbox
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot


class StorageTransaction:
    """The transaction of the handlers' writes and the record. It begins with the query for the record, in one round
    trip; commit or rollback ends it, whichever comes first.

    ``apart``: the query is committed before. Else two duplicates, one waiting for the other in another database, would
    deadlock: no server detects that, and after the timeout both would begin again, for ever.
    """

    def __init__(self, session: Any, finding: Command, apart: bool = False):
        self.session = session
        if apart:
            self.found = session.all(*finding)
            self._block: AbstractContextManager[Any] | None = session.transaction()
            self._block.__enter__()
        else:
            self._block = session.transaction_with(*finding)
            self.found = self._block.__enter__()

    def commit(self) -> None:
        block, self._block = self._block, None
        if block:
            block.__exit__(None, None, None)

    def rollback(self) -> None:
        block, self._block = self._block, None
        if block:
            self.session.rollback()


log = logging.getLogger("pgqueue_admin.transport")


class EnlistedTransactions:
    """Handlers' transactions in databases other than the outbox's, which commit with it. Each begins when a handler
    first enlists its database; all end together.

    The id belongs to this attempt: another attempt at the same message may have another decision.
    """

    def __init__(self, slot: WorkerSlot, outbox: Outbox):
        self._slot, self._outbox = slot, outbox
        self._joined: dict[str, EnlistedTransaction] = {}
        self._is_undecided = self._is_down = False
        self.id = uuid4().hex

    def __bool__(self) -> bool:
        return bool(self._joined)

    @property
    def names(self) -> list[str]:
        return list(self._joined)

    def session(self, name: str) -> TwoPhaseSession:
        """The database's session, inside its transaction. Raises NotEnlisted, DatabaseDown."""
        if name not in self._joined:
            if name not in self._outbox.databases:
                raise NotEnlisted(name, self._outbox.databases)
            self._joined[name] = self._begun(name)
        return self._joined[name].session

    def _begun(self, name: str) -> "EnlistedTransaction":
        try:
            session = self._slot.enlisted_of(self._outbox, name).fresh()
            return EnlistedTransaction(self._outbox.databases[name], session, self.id)
        except DatabaseDown:
            self._is_down = True
            raise

    def prepare(self) -> None:
        for each in self._joined.values():
            each.prepare()

    def commit_with(self, storage: StorageTransaction) -> None:
        """The commit of the outbox decides; without its answer, the outcome is unknown here."""
        self._is_undecided = True
        try:
            storage.commit()
        except DatabaseError as error:
            self._is_undecided = isinstance(error, DatabaseDown) or storage.session.closed
            raise
        joined, self._joined = self._joined, {}
        for each in joined.values():
            each.commit()

    def undo(self) -> None:
        """Undo. Transactions not prepared end with their session; possibly decided ones are left to the recovery."""
        joined, self._joined = self._joined, {}
        for each in joined.values():
            each.undo(self._is_undecided)

    @property
    def lost(self) -> bool:
        """Whether a session was lost, which is not the message's fault."""
        return self._is_down or any(self._slot.enlisted_of(self._outbox, name).lost for name in self._joined)


class EnlistedTransaction:
    """The transaction in one database."""

    def __init__(self, database: EnlistedDatabase, session: TwoPhaseSession, id: str):
        self.session = session
        self._database, self._id = database, id
        self._is_prepared = False
        try:
            database.begin(session, id)
            session.place_guard()
        except BaseException:
            session.close()
            raise

    def prepare(self) -> None:
        self._database.prepare(self.session, self._id)
        self._is_prepared = True

    def commit(self) -> None:
        """Commit. It is decided: if this fails, the recovery commits, and the message has not failed."""
        try:
            self._database.commit(self.session, self._id)
        except DatabaseError as error:
            log.warning("What was decided is committed in %s by the recovery: %s", self._database.name, error)
            self.session.close()

    def undo(self, is_undecided: bool) -> None:
        try:
            if self._is_prepared and not is_undecided and not self.session.closed:
                self._database.rollback(self.session, self._id)
        except DatabaseError as error:
            log.warning("What is prepared in %s is rolled back by the recovery: %s", self._database.name, error)
        finally:
            self.session.close()
