"""A delayed table on PostgreSQL (contract: dialects.delayed_store.DelayedStore)."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.errors import AlreadyExists, RowsDropped
from pgqueue_admin.dialects.postgresql import addressing, body_column
from pgqueue_admin.dialects.postgresql.table_checks import ExpectedTable
from pgqueue_admin.dialects.postgresql.table_exists import is_there
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault

INDEX_SUFFIX = "_Due"


class PostgreSQLDelayed:
    """Insertions, moves and lookups are one statement each, in the caller's transaction."""

    def __init__(self, sql: StatementFolder, address: Address, queue: Address):
        self.address = address
        self._queue = queue
        self._folder = sql
        self._sql = sql.delayed
        self._store = self._sql.store(table=address)
        self._next_due = self._sql.next_due(table=address)

    def create(self, session: Session) -> None:
        names = {"schema": self.address.schema, "name": self.address.table}
        index = self.address.table + INDEX_SUFFIX
        with suppress(AlreadyExists), session.transaction():
            if not is_there(session, self._folder, self.address):
                session.run(self._sql.create(table=self.address))
            if not session.value(self._sql.indexes(), names):
                session.run(self._sql.create_index(table=self.address, index=index))

    def add_body_column(self, session: Session) -> None:
        body_column.add(session, self._folder, self.address)

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        return ExpectedTable(session, self._folder, self.address).as_delayed(readable)

    def insertions(self, rows: Sequence[DelayedRow]) -> list[Command]:
        headers, bodies, ats, delays_ms = map(list, zip(*rows, strict=True))
        return [(self._store, {"headers": headers, "bodies": bodies, "ats": ats, "delays_ms": delays_ms})]

    def move_due(self, session: Session, most: int) -> int:
        query = self._sql.move_due(table=self.address, queue=self._queue, batch=most)
        taken, due = session.one(query) or (0, 0)
        if taken < due:
            queue = addressing.canonical(self._queue)
            raise RowsDropped(f"{queue} took {taken} of {due} that are due, and that was undone.")
        return int(taken)

    def next_due(self, session: Session) -> float | None:
        seconds = session.value(self._next_due)
        return None if seconds is None else float(seconds)
