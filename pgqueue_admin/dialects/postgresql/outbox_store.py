"""An outbox table on PostgreSQL (contract: dialects.outbox_store.OutboxStore)."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.outbox_store import OutboxRecord, OutboxWork
from pgqueue_admin.dialects.outbox_table import OutboxTable
from pgqueue_admin.dialects.postgresql import addressing, table_exists


class PostgreSQLOutbox(OutboxTable):
    column_types = {
        "MessageId": ("character varying(200)",),
        "Dispatched": ("boolean",),
        "DispatchedAt": ("timestamp without time zone",),
        "PersistenceVersion": ("character varying(23)",),
        "Operations": ("jsonb",),
    }

    def __init__(self, sql: Any, address: Address):
        named = {"schema": address.schema, "name": address.table}
        super().__init__(sql, address, addressing.canonical(address), named)
        self.before_mark = self._sql.before_mark(), None
        is_written = self._sql.is_written
        self._store = self._sql.store(table=address, is_written=is_written)
        self._complete = self._sql.complete(table=address, is_written=is_written)

    def create(self, session: Session) -> None:
        table_exists.create(session, self._dialect, self.address, self._creation())
        self._create_indexes(session)

    def _index(self, column: str) -> Any:
        return self._sql.create_index(table=self.address, index=f"{self.address.table}_{column}", column=column)

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        milliseconds = f"{max(1, round(wait.total_seconds() * 1000))}ms"
        return self._store, {
            "id": message_id,
            "operations": operations,
            "version": __version__,
            "wait": milliseconds,
            "durable": self.is_durable,
        }

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {"keep": keep.total_seconds(), "grace": grace.total_seconds(), "table": self._name}
        return OutboxWork(*session.all(query, asked)[0])

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        query = self._sql.purge(table=self.address, most=most)
        return session.run(query, {"keep": keep.total_seconds()})

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        query = self._sql.pending(table=self.address, is_over=self._is_over(session), most=most)
        rows = session.all(query, {"grace": grace.total_seconds(), "without": list(without)})
        return [OutboxRecord(*row) for row in rows]
