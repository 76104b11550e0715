"""An outbox table on MySQL or MariaDB (contract: dialects.outbox_store.OutboxStore)."""

import math
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.mysql.query import BoundedQuery
from pgqueue_admin.dialects.outbox_store import OutboxRecord, OutboxWork
from pgqueue_admin.dialects.outbox_table import OutboxTable


class MySQLOutbox(OutboxTable):
    locks_gaps = True
    column_types = {
        "MessageId": ("varchar(200)",),
        "Dispatched": ("bit(1)",),
        "DispatchedAt": ("datetime", "datetime(6)"),
        "PersistenceVersion": ("varchar(23)",),
        "Operations": ("json", "longtext"),  # MariaDB's json
    }

    def __init__(self, sql: Any, address: Address):
        named = {"schema": address.schema, "name": address.table}
        super().__init__(sql, address, IDENTIFIERS.table(address), named)
        self._store = BoundedQuery(self._sql.store(table=address))
        self._store.wait, self._store.as_before = self._sql.wait(), self._sql.wait_as_before()
        self._complete = self._sql.complete(table=address)

    def create(self, session: Session) -> None:
        """Create what is missing. Each statement commits the open transaction."""
        if not self._columns(session):
            session.run(self._creation())
        for statement in self._missing_indexes(session):
            with suppress(AlreadyExists):
                session.run(statement)

    def _index(self, column: str) -> Any:
        return self._sql.create_index(table=self.address, index=f"Index_{column}", column=column)

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        seconds = max(1, math.ceil(wait.total_seconds()))
        return self._store, {"id": message_id, "operations": operations, "version": __version__, "wait": seconds}

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {"keep": _microseconds(keep), "grace": _microseconds(grace), "table": self._name}
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


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
