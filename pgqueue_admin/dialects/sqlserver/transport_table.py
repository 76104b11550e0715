"""The common part of the transport's three tables: creation under a lock, and checks of columns."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.errors import AlreadyExists, Locked
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.column_change import ColumnChanges
from pgqueue_admin.dialects.sqlserver.query import Catalog, Query, written
from pgqueue_admin.dialects.statements import Statement, StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault

ANY_LENGTH = -1  # length of a (max) type in the catalog
BODY_COLUMN = "BodyString"


class ExpectedColumn(NamedTuple):
    """The column's type as the catalog has it, and the statements to add or retype it.

    ``retype`` empty: any type will do, because we only read it.
    """

    name: str
    type: str
    length: int
    add: str
    retype: str

    def __str__(self) -> str:
        return f"{self.type}(max)" if self.length == ANY_LENGTH else self.type


HEADERS = ExpectedColumn("Headers", "nvarchar", ANY_LENGTH, "add_headers", "retype_headers")
BODY = ExpectedColumn("Body", "varbinary", ANY_LENGTH, "add_body", "retype_body")


class TransportTable:
    """One table. ``sql``: its dialect. ``noun``: the file of its statements; ``creation``: those that create it."""

    noun: str
    kind: str
    creation: tuple[str, ...]
    stops = False  # its faults prevent receiving

    def __init__(self, sql: Any, address: Address):
        self.address = address
        self._folder: StatementFolder = sql
        self._sql = getattr(sql, self.noun)
        self._name = addressing.qualified(address)
        self._lock = {"resource": f"{sql.in_full(address)}_lock"}
        self._catalog = Catalog(addressing.catalog(address))
        self._columns_query = sql.queue.columns(catalog=self._catalog)
        self._changes = ColumnChanges(sql.table_repair, address)

    def create(self, session: Session) -> None:
        """Create the table if missing: check before and after taking the lock, as the original's installers do."""
        with suppress(AlreadyExists), session.transaction():
            if not self._columns(session):
                self._wait_for_lock(session)
                if not self._columns(session):
                    for statement in self._creation():
                        session.run(statement)

    def add_body_column(self, session: Session) -> None:
        with session.transaction():
            if BODY_COLUMN not in self._columns(session):
                self._wait_for_lock(session)
                if BODY_COLUMN not in self._columns(session):
                    session.run(self._folder.table_repair.add_body_column(table=self.address))

    def _wait_for_lock(self, session: Session) -> None:
        if session.value(self._folder.queue.lock(), self._lock) < 0:
            raise Locked(f"{self._name} is made by somebody else, who has not ended.")

    def _creation(self) -> list[Query]:
        return [getattr(self._sql, name)(table=self.address) for name in self.creation]

    def _columns(self, session: Session) -> dict[str, Any]:
        return {row.name: row for row in session.all(self._columns_query, {"table": self._name})}

    # --- faults

    def _missing(self) -> TableFault:
        said = f"The {self.kind} table {self._name} does not exist: endpoint.create_queues() makes it, or an installer."
        return TableFault(said, ";\n".join(map(written, self._creation())), self.stops)

    def _column_faults(
        self, session: Session, found: dict[str, Any], wanted: Sequence[ExpectedColumn]
    ) -> Iterator[TableFault]:
        for column in wanted:
            row = found.get(column.name)
            if row is None:
                yield self._fault(f"has no column {column.name}", column.add, self.stops)
            elif column.retype and (row.type, row.length) != (column.type, column.length):
                said = f"has {column.name} as {_said(row)}, not {column}"
                yield self._change_fault(session, found, said, column.name, column.retype)

    def _change_fault(
        self, session: Session, found: dict[str, Any], what: str, column: str, cure: str, stops: bool = False
    ) -> TableFault:
        query = getattr(self._folder.table_repair, cure)(table=self.address)
        is_computed_from = column == BODY.name and BODY_COLUMN in found
        around = self._changes.around(session, column, query, is_computed_from)
        return TableFault(f"{self._name} {what}.", around, stops)

    def _body_column_fault(self, found: dict[str, Any], readable: bool) -> Iterator[TableFault]:
        if readable and BODY_COLUMN not in found:
            yield self._fault(f"has no column {BODY_COLUMN}, which the settings ask for", "add_body_column")

    def _index_fault(
        self, session: Session, found: dict[str, Any], column: str, why: str, *forms: Statement
    ) -> Iterator[TableFault]:
        """``forms``: the statement that creates the index, and the one to use if another index is clustered."""
        if column in found and not found[column].leads_an_index:
            made = [each(table=self.address) for each in (forms[0], forms[-1])]
            cure = self._changes.index_anew(session, f"Index_{column}", *made)
            yield TableFault(f"{self._name} has no index on {column}: {why}.", cure)

    def _fault(self, what: str, cure: str, stops: bool = False) -> TableFault:
        query = getattr(self._folder.table_repair, cure)(table=self.address)
        return TableFault(f"{self._name} {what}.", written(query), stops)


def _said(row: Any) -> str:
    """Name of a column's type; the catalog has lengths in bytes."""
    if row.type not in ("varchar", "nvarchar", "varbinary"):
        return str(row.type)
    length = row.length // 2 if row.type == "nvarchar" else row.length
    return f"{row.type}({'max' if row.length == ANY_LENGTH else length})"
