"""An outbox table on SQL Server (contract: dialects.outbox_store.OutboxStore)."""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.outbox_store import Isolation, OutboxRecord, OutboxWork
from pgqueue_admin.dialects.outbox_table import OutboxTable
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.query import Catalog
from pgqueue_admin.dialects.table_fault import TableFault

_IS_DISPATCHED = {"DispatchedAt": 1, "Dispatched": 0}  # value of Dispatched in the filter of an index


class SQLServerOutbox(OutboxTable):
    column_types = {
        "MessageId": ("nvarchar(200)",),
        "Dispatched": ("bit",),
        "DispatchedAt": ("datetime",),
        "PersistenceVersion": ("varchar(23)",),
        "Operations": ("nvarchar(max)",),
    }

    def __init__(self, sql: Any, address: Address):
        name = addressing.qualified(address)
        super().__init__(sql, address, name, {"table": name})
        self._complete = self._sql.complete(table=address)
        self._catalog = Catalog(addressing.catalog(address))
        self._resource = f"pgqueue outbox {sha256(sql.in_full(address).encode()).hexdigest()}"  # at most 255 characters

    def create(self, session: Session) -> None:
        """No lock, like the original's script; a concurrent second caller finds the table."""
        if not self._columns(session):
            with suppress(AlreadyExists), session.transaction():
                session.run(self._creation())
        self._create_indexes(session)

    def _isolation_faults(self, session: Session, isolation: Isolation) -> Iterator[TableFault]:
        """Without it, the first statement of each message's transaction would fail (3952)."""
        if isolation != "snapshot":
            return
        asked = {"catalog": addressing.place(self.address.schema).catalog}
        for row in session.all(self._sql.without_snapshots(), asked):
            said = f"The database {row.name} allows no isolation snapshot, which the outbox is to have."
            yield TableFault(said, f"alter database {addressing.quote(row.name)} set allow_snapshot_isolation on", True)

    def _index(self, column: str) -> Any:
        named = {"index": f"Index_{column}", "column": column, "dispatched": _IS_DISPATCHED[column]}
        return self._sql.create_index(table=self.address, **named)

    def _indexes_query(self) -> Any:
        return self._sql.indexes(catalog=self._catalog)

    def _columns_query(self) -> Any:
        return self._sql.columns(catalog=self._catalog)

    def storing(self, message_id: str, operations: str, wait: timedelta) -> Command:
        query = self._sql.store(table=self.address, wait=max(1, round(wait.total_seconds() * 1000)))
        return query, {"id": message_id, "operations": operations, "version": __version__}

    def work(self, session: Session, keep: timedelta, grace: timedelta) -> OutboxWork:
        query = self._sql.work(table=self.address, is_over=self._is_over(session))
        asked = {**_keep(keep), "resource": self._resource, **_grace(grace)}
        leads, purge, relay = session.all(query, asked)[0]
        return OutboxWork(bool(leads), bool(purge), bool(relay))

    def purge(self, session: Session, keep: timedelta, most: int) -> int:
        return session.run(self._sql.purge(table=self.address, most=most), _keep(keep))

    def pending(self, session: Session, grace: timedelta, most: int, without: Collection[str]) -> list[OutboxRecord]:
        query = self._sql.pending(table=self.address, is_over=self._is_over(session), most=most)
        rows = session.all(query, {**_grace(grace), "without": json.dumps(list(without))})
        return [OutboxRecord(row.id, bool(row.dispatched), row.operations) for row in rows]


def _keep(span: timedelta) -> dict[str, int]:
    """In days and seconds, as ``_grace``."""
    return {"keep_days": span.days, "keep": span.seconds}


def _grace(span: timedelta) -> dict[str, int]:
    """In days, seconds and microseconds: dateadd takes an int, which a hundred years in seconds exceed."""
    return {"grace_days": span.days, "grace": span.seconds, "grace_rest": span.microseconds}
