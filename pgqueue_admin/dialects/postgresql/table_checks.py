"""Checks queue, delayed and subscription tables (wire sheet 1), with a repair for each fault."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.dialects.postgresql.query import written
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault


class ExpectedColumn(NamedTuple):
    """Allowed types, the preferred one first, and the statements to add or retype the column."""

    name: str
    types: tuple[str, ...]
    add: str
    retype: str


ID = ExpectedColumn("id", ("uuid",), "add_id", "retype_id")
EXPIRES = ExpectedColumn("expires", ("timestamp without time zone",), "add_expires", "retype_expires")
HEADERS = ExpectedColumn("headers", ("text",), "add_headers", "retype_headers")
BODY = ExpectedColumn("body", ("bytea",), "add_body", "retype_body")
SEQ = ExpectedColumn("seq", ("integer", "bigint"), "add_seq", "retype_seq")
DUE = ExpectedColumn("due", ("timestamp with time zone",), "add_due", "retype_due")


class ExpectedTable:
    """One table as described in the catalog."""

    def __init__(self, session: Session, sql: StatementFolder, address: Address):
        names = {"schema": address.schema, "name": address.table}
        self._session, self._sql, self._address = session, sql, address
        self._name = addressing.canonical(address)
        self._columns: dict[str, Any] = {row.name: row for row in session.all(sql.queue.columns(), names)}

    def as_queue(self, readable: bool) -> Iterator[TableFault]:
        """Faults as a queue. ``readable``: require bodies readable by SQL (a column bodystring)."""
        if not self._columns:
            yield self._missing(self._sql.queue.create(table=self._address), "queue", stops=True)
            return
        yield from self._columns_faults(ID, EXPIRES, HEADERS, BODY, SEQ, stops=True)
        yield from self._id_faults()
        if self._lacks("seq", "leads_an_index"):
            yield self._fault("has no index on seq: each receive would read the whole table", "index_seq", stops=True)
        if self._lacks("seq", "has_default"):
            query = self._sql.table_repair.number_seq(table=self._address, next=self._next_seq())
            yield TableFault(f"{self._name} gives no seq by itself: no send would succeed.", written(query))
        yield from self._body_column(readable)

    def as_delayed(self, readable: bool) -> Iterator[TableFault]:
        """As ``as_queue``, for delayed messages."""
        index = self._sql.delayed.create_index(table=self._address, index=f"{self._address.table}_Due")
        if not self._columns:
            made = self._missing(self._sql.delayed.create(table=self._address), "delayed")
            yield made._replace(cure=f"{made.cure};\n{written(index)}")
            return
        yield from self._columns_faults(ID, HEADERS, BODY, DUE)
        yield from self._id_faults()
        if self._lacks("id", "has_default"):
            yield self._fault("gives no id by itself: nothing could be delayed", "default_id")
        if "due" not in self._columns or self._lacks("due", "leads_an_index"):
            yield TableFault(f"{self._name} has no index on due: each look reads all of it.", written(index))
        yield from self._body_column(readable)

    def as_subscriptions(self) -> Iterator[TableFault]:
        """As ``as_queue``, for subscriptions."""
        if not self._columns:
            made = self._missing(self._sql.subscription.create(table=self._address), "subscription")
            yield made._replace(said=f"{made.said} Where endpoints share another, name that: subscription_table.")
        elif self._lacks("endpoint", "leads_an_index"):
            yield self._fault("has no key of endpoint and topic: nobody could subscribe", "one_per_topic")

    def _columns_faults(self, *wanted: ExpectedColumn, stops: bool = False) -> Iterator[TableFault]:
        for name, types, add, retype in wanted:
            if name not in self._columns:
                yield self._fault(f"has no column {name}", add, stops)
            elif (found := self._columns[name].type) not in types:
                yield self._fault(f"has {name} as {found}, not {types[0]}", retype)

    def _id_faults(self) -> Iterator[TableFault]:
        if self._lacks("id", "is_unique"):
            yield self._fault(
                "has no unique index on id: one receive could delete two messages", "unique_id", stops=True
            )

    def _body_column(self, readable: bool) -> Iterator[TableFault]:
        if readable and "bodystring" not in self._columns:
            query = self._sql.body_column.add(table=self._address)
            yield TableFault(f"{self._name} has no column bodystring, which the settings ask for.", written(query))

    def _lacks(self, column: str, what: str) -> bool:
        return column in self._columns and not getattr(self._columns[column], what)

    def _fault(self, what: str, cure: str, stops: bool = False) -> TableFault:
        query = getattr(self._sql.table_repair, cure)(table=self._address)
        return TableFault(f"{self._name} {what}.", written(query), stops)

    def _missing(self, create: Any, kind: str, stops: bool = False) -> TableFault:
        said = f"The {kind} table {self._name} does not exist: endpoint.create_queues() makes it, or an installer."
        return TableFault(said, written(create), stops)

    def _next_seq(self) -> int:
        return int(self._session.value(self._sql.table_repair.next_seq(table=self._address)))
