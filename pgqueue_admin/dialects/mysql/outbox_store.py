"""An outbox table on MySQL or MariaDB (contract: dialects.outbox_store.OutboxStore)."""

import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.mysql.query import BoundedQuery, Query, written
from pgqueue_admin.dialects.outbox_store import OutboxRecord, OutboxWork
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault

_COLUMNS = {
    "MessageId": ("varchar(200)",),
    "Dispatched": ("bit(1)",),
    "DispatchedAt": ("datetime", "datetime(6)"),
    "PersistenceVersion": ("varchar(23)",),
    "Operations": ("json", "longtext"),  # which is what MariaDB makes of it
}
_INDEXED = ("DispatchedAt", "Dispatched")


class MySQLOutbox:
    """The original's table, or one of ours, which has a column more."""

    def __init__(self, sql: StatementFolder, address: Address):
        self.address = address
        self._sql = sql.outbox
        self._named = {"schema": address.schema, "name": address.table}
        self._find, self._store = self._sql.find(table=address), BoundedQuery(self._sql.store(table=address))
        self._store.wait, self._store.as_before = self._sql.wait(), self._sql.wait_as_before()
        self._complete, self._mark = self._sql.complete(table=address), self._sql.mark(table=address)
        self.says_when: bool | None = None

    def create(self, session: Session) -> None:
        """Each statement ends the transaction that it is asked in."""
        if not self._columns(session):
            session.run(self._sql.create(table=self.address))
        for statement in self._missing_indexes(session):
            with suppress(AlreadyExists):
                session.run(statement)

    def faults(self, session: Session) -> Iterator[TableFault]:
        name, found = IDENTIFIERS.table(self.address), self._columns(session)
        if not found:
            create = written(self._sql.create(table=self.address))
            yield TableFault(
                f"The outbox table {name} does not exist: endpoint.create_queues() makes it.", create, True
            )
            return
        for column, types in _COLUMNS.items():
            if column not in found or found[column].type.lower() not in types:
                yield TableFault(f"{name} has no column {column} as {types[0]}.", "See manage.py outbox_script.", True)
        if "MessageId" in found and not found["MessageId"].is_unique:
            said = f"{name} has no unique key on MessageId: a message could be handled twice."
            yield TableFault(said, f"alter table {name} add primary key (MessageId)", True)
        for statement in self._missing_indexes(session):
            yield TableFault(f"{name} lacks an index: each look for what is over reads all of it.", written(statement))

    def _missing_indexes(self, session: Session) -> list[Query]:
        there = {row.name for row in session.all(self._sql.indexes(), self._named)}
        return [
            self._sql.create_index(table=self.address, index=f"Index_{column}", column=column)
            for column in _INDEXED
            if column not in there
        ]

    def _columns(self, session: Session) -> dict[str, Any]:
        return {row.name: row for row in session.all(self._sql.columns(), self._named)}

    def finding(self, message_id: str) -> Command:
        return self._find, {"id": message_id}

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        seconds = max(1, math.ceil(wait.total_seconds()))
        return self._store, {"id": message_id, "operations": operations, "version": __version__, "wait": seconds}

    def completing(self, message_id: str, operations: str) -> Command:
        return self._complete, {"id": message_id, "operations": operations}

    def marking(self, message_id: str) -> Command:
        return self._mark, {"id": message_id}

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {"keep": _microseconds(keep), "grace": _microseconds(grace), "table": IDENTIFIERS.table(self.address)}
        leads, purge, relay = session.all(query, asked)[0]
        return OutboxWork(leads == 1, bool(purge), bool(relay))

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        with session.transaction():
            found = session.all(self._sql.dispatched(table=self.address, most=most), {"keep": _microseconds(keep)})
            ids = [row.id for row in found]
            return session.run(self._sql.purge(table=self.address), {"ids": ids}) if ids else 0

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        is_left = self._sql.is_not_among if without else self._sql.is_any
        query = self._sql.pending(table=self.address, is_over=self._is_over(session), is_left=is_left, most=most)
        rows = session.all(query, {"grace": _microseconds(grace), "without": list(without) or None})
        return [OutboxRecord(row.id, bool(row.dispatched), row.operations) for row in rows]

    def _is_over(self, session: Session) -> Any:
        if self.says_when is None:
            self.says_when = "CreatedAt" in self._columns(session)
        return self._sql.is_over if self.says_when else self._sql.is_undated


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
