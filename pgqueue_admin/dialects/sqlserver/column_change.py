"""Changes a column that indexes, keys or defaults depend on: the server refuses it (5074) until these are dropped."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.query import Catalog, Query, written
from pgqueue_admin.dialects.statements import Statements

CLUSTERED = 1  # sys.indexes.type


class TableIndex(NamedTuple):
    """``key``: PRIMARY KEY or UNIQUE of a constraint, else empty. ``keys``: quoted columns with their order."""

    name: str
    is_clustered: bool
    is_unique: bool
    key: str
    keys: tuple[str, ...]
    columns: frozenset[str]
    included: tuple[str, ...]
    filter: str

    def holds(self, column: str) -> bool:
        return column in self.columns or addressing.quote(column).lower() in self.filter.lower()


class ColumnChanges:
    """Column changes of one table. ``sql``: the statements of table_repair."""

    def __init__(self, sql: Statements, table: Address):
        self._sql, self._table = sql, table
        self._catalog, self._named = Catalog(addressing.catalog(table)), {"table": addressing.qualified(table)}

    def indexes(self, session: Session) -> list[TableIndex]:
        rows = session.all(self._sql.indexes(catalog=self._catalog), self._named)
        return [_index(list(each)) for _, each in groupby(rows, key=lambda row: row.name)]

    def around(self, session: Session, column: str, cure: Query, body_column: bool = False) -> str:
        """The statements that change the column, in an order that the server accepts. ``body_column``: it is computed
        from this column. What is dropped is recreated as it was, the clustered index dropped last and created first.
        """
        held = [each for each in self.indexes(session) if each.holds(column)]
        held.sort(key=lambda each: each.is_clustered)
        rows = session.all(self._sql.defaults(catalog=self._catalog), self._named)
        defaults = [row for row in rows if row.column == column]
        keeps = "drop column" not in cure  # a replaced column loses its default, too
        steps = [*map(self._drop, held), *(self._drop_constraint(row.name) for row in defaults)]
        steps += [self._sql.drop_body_column(table=self._table)] if body_column else []
        steps.append(cure)
        steps += [self._sql.add_body_column(table=self._table)] if body_column else []
        steps += [self._add_default(row) for row in defaults] if keeps else []
        steps += [self._create(each) for each in reversed(held)]
        return ";\n".join(map(written, steps))

    def _drop(self, index: TableIndex) -> Any:
        if index.key:
            return self._drop_constraint(index.name)
        return self._sql.drop_index(table=self._table, index=index.name)

    def _drop_constraint(self, name: str) -> Any:
        return self._sql.drop_constraint(table=self._table, name=name)

    def _add_default(self, row: Any) -> Any:
        said = {"name": row.name, "column": row.column, "definition": _doubled(row.definition)}
        return self._sql.add_default(table=self._table, **said)

    def _create(self, index: TableIndex) -> Any:
        way = "clustered" if index.is_clustered else "nonclustered"
        keys = Query(", ".join(index.keys))
        if index.key:
            said = {"name": index.name, "key": Query(f"{index.key} {way}"), "keys": keys}
            return self._sql.add_key(table=self._table, **said)
        kind = Query(f"unique {way}" if index.is_unique else way)
        rest = "".join(_rest(index))
        said = {"index": index.name, "kind": kind, "keys": keys, "rest": _doubled(rest)}
        return self._sql.create_index(table=self._table, **said)

    def index_anew(self, session: Session, name: str, clustered: Query, aside: Query) -> str:
        """The statements that recreate an index. One of its name is useless, and dropped. If another is clustered, it
        is made nonclustered: ``aside``.
        """
        found = self.indexes(session)
        others = [each for each in found if each.name != name]
        cure = aside if any(each.is_clustered for each in others) else clustered
        return ";\n".join(map(written, [*(self._drop(each) for each in found if each.name == name), cure]))


def _index(rows: Sequence[Any]) -> TableIndex:
    first = rows[0]
    keys = tuple(_ordered(row) for row in rows if not row.is_included)
    included = tuple(_quoted(row.column) for row in rows if row.is_included)
    key = "primary key" if first.is_primary_key else "unique" if first.is_unique_constraint else ""
    columns = frozenset(row.column for row in rows)
    about = first.type == CLUSTERED, bool(first.is_unique), key
    return TableIndex(first.name, *about, keys, columns, included, first.filter or "")


def _ordered(row: Any) -> str:
    return f"{_quoted(row.column)} desc" if row.is_descending else _quoted(row.column)


def _rest(index: TableIndex) -> Iterator[str]:
    if index.included:
        yield f" include ({', '.join(index.included)})"
    if index.filter:
        yield f" where {index.filter}"


def _quoted(name: str) -> str:
    return addressing.quote(name).replace("%", "%%")


def _doubled(text: str) -> Query:
    return Query(text.replace("%", "%%"))
