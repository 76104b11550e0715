"""The part of an outbox table common to all databases: columns, indexes, and operations of one statement."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.outbox_store import Isolation
from pgqueue_admin.dialects.table_fault import TableFault


class OutboxTable(ABC):
    """The original's table, or ours, which has one more column. Part of OutboxStore (dialects.outbox_store)."""

    _complete: Any  # the statement that adds operations to a record
    column_types: ClassVar[Mapping[str, tuple[str, ...]]]  # as the catalog writes them, the preferred one first
    locks_gaps: ClassVar[bool] = False
    indexed: ClassVar[tuple[str, ...]] = ("DispatchedAt", "Dispatched")  # the first columns of indexes

    def __init__(self, sql: Any, address: Address, name: str, named: Mapping[str, str]):
        """``sql``: the dialect. ``name``: the table in a statement; ``named``: its parameters in catalog queries."""
        self.address = address
        self.says_when: bool | None = None
        self.is_durable = False
        self.before_mark: Command | None = None
        self._dialect, self._sql = sql, sql.outbox
        self._name, self._named = name, named
        self._find, self._mark = self._sql.find(table=address), self._sql.mark(table=address)

    @abstractmethod
    def _index(self, column: str) -> Any:
        """The statement that creates the index on the column."""

    def _creation(self) -> Any:
        return self._sql.create(table=self.address)

    def _create_indexes(self, session: Session) -> None:
        for statement in self._missing_indexes(session):
            with suppress(AlreadyExists), session.transaction():
                session.run(statement)

    def faults(self, session: Session, isolation: Isolation = "read_committed") -> Iterator[TableFault]:
        yield from self._isolation_faults(session, isolation)
        found, written = self._columns(session), self._dialect.written
        if not found:
            said = f"The outbox table {self._name} does not exist: endpoint.create_queues() makes it."
            yield TableFault(said, written(self._creation()), True)
            return
        for column, types in self.column_types.items():
            if column not in found or found[column].type.lower() not in types:
                said = f"{self._name} has no column {column} as {types[0]}."
                yield TableFault(said, "See manage.py outbox_script.", True)
        if "MessageId" in found and not found["MessageId"].is_unique:
            said = f"{self._name} has no unique key on MessageId: a message could be handled twice."
            yield TableFault(said, written(self._sql.add_key(table=self.address)), True)
        for statement in self._missing_indexes(session):
            said = f"{self._name} lacks an index: each look for what is over reads all of it."
            yield TableFault(said, written(statement))

    def _isolation_faults(self, session: Session, isolation: Isolation) -> Iterator[TableFault]:
        """Faults of a database that does not allow the level; levels the dialect lacks are refused earlier."""
        yield from ()

    def _missing_indexes(self, session: Session) -> list[Any]:
        there = {self._spelling(row.name) for row in session.all(self._indexes_query(), self._named)}
        return [self._index(column) for column in self.indexed if column not in there]

    def _columns(self, session: Session) -> dict[str, Any]:
        return {self._spelling(row.name): row for row in session.all(self._columns_query(), self._named)}

    def _spelling(self, column: str) -> str:
        """The catalog's name as the original's script spells it."""
        return column

    def _indexes_query(self) -> Any:
        return self._sql.indexes()

    def _columns_query(self) -> Any:
        return self._sql.columns()

    def finding(self, message_id: str) -> Command:
        return self._find, {"id": message_id}

    def completing(self, message_id: str, operations: str) -> Command:
        return self._complete, {"id": message_id, "operations": operations}

    def marking(self, message_id: str) -> Command:
        return self._mark, {"id": message_id}

    def _is_over(self, session: Session) -> Any:
        if self.says_when is None:
            self.says_when = "CreatedAt" in self._columns(session)
        return self._sql.is_over if self.says_when else self._sql.is_undated
