"""An outbox table on PostgreSQL (contract: dialects.outbox_store.OutboxStore)."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.outbox_store import OutboxRecord, OutboxWork
from pgqueue_admin.dialects.postgresql import addressing, table_exists
from pgqueue_admin.dialects.postgresql.query import written
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault

_COLUMNS = {
    "MessageId": ("character varying(200)",),
    "Dispatched": ("boolean",),
    "DispatchedAt": ("timestamp without time zone",),
    "PersistenceVersion": ("character varying(23)",),
    "Operations": ("jsonb",),
}
_INDEXED = ("DispatchedAt", "Dispatched")


class PostgreSQLOutbox:
    """The original's table, or one of ours, which has a column more."""

    def __init__(self, sql: StatementFolder, address: Address):
        self.address = address
        self._folder, self._sql = sql, sql.outbox
        self._named = {"schema": address.schema, "name": address.table}
        is_written = self._sql.is_written
        self._find, self._mark = self._sql.find(table=address), self._sql.mark(table=address)
        self._store = self._sql.store(table=address, is_written=is_written)
        self._complete = self._sql.complete(table=address, is_written=is_written)
        self.says_when: bool | None = None

    def create(self, session: Session) -> None:
        table_exists.create(session, self._folder, self.address, self._sql.create(table=self.address))
        for statement in self._missing_indexes(session):
            with suppress(AlreadyExists), session.transaction():
                session.run(statement)

    def faults(self, session: Session) -> Iterator[TableFault]:
        name, found = addressing.canonical(self.address), self._columns(session)
        if not found:
            create = written(self._sql.create(table=self.address))
            yield TableFault(
                f"The outbox table {name} does not exist: endpoint.create_queues() makes it.", create, True
            )
            return
        for column, types in _COLUMNS.items():
            if column not in found or found[column].type not in types:
                yield TableFault(f"{name} has no column {column} as {types[0]}.", "See manage.py outbox_script.", True)
        if "MessageId" in found and not found["MessageId"].is_unique:
            said = f"{name} has no unique key on MessageId: a message could be handled twice."
            yield TableFault(said, f'alter table {name} add primary key ("MessageId")', True)
        for statement in self._missing_indexes(session):
            yield TableFault(f"{name} lacks an index: each look for what is over reads all of it.", written(statement))

    def _missing_indexes(self, session: Session) -> list[Any]:
        there = {row.name for row in session.all(self._sql.indexes(), self._named)}
        return [
            self._sql.create_index(table=self.address, index=f"{self.address.table}_{column}", column=column)
            for column in _INDEXED
            if column not in there
        ]

    def _columns(self, session: Session) -> dict[str, Any]:
        return {row.name: row for row in session.all(self._sql.columns(), self._named)}

    def finding(self, message_id: str) -> Command:
        return self._find, {"id": message_id}

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        milliseconds = f"{max(1, round(wait.total_seconds() * 1000))}ms"
        return self._store, {
            "id": message_id,
            "operations": operations,
            "version": __version__,
            "wait": milliseconds,
        }

    def completing(self, message_id: str, operations: str) -> Command:
        return self._complete, {"id": message_id, "operations": operations}

    def marking(self, message_id: str) -> Command:
        return self._mark, {"id": message_id}

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {"keep": keep.total_seconds(), "grace": grace.total_seconds()}
        return OutboxWork(*session.all(query, {**asked, "table": addressing.canonical(self.address)})[0])

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        query = self._sql.purge(table=self.address, most=most)
        return session.run(query, {"keep": keep.total_seconds()})

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        query = self._sql.pending(table=self.address, is_over=self._is_over(session), most=most)
        rows = session.all(query, {"grace": grace.total_seconds(), "without": list(without)})
        return [OutboxRecord(*row) for row in rows]

    def _is_over(self, session: Session) -> Any:
        if self.says_when is None:
            self.says_when = "CreatedAt" in self._columns(session)
        return self._sql.is_over if self.says_when else self._sql.is_undated
