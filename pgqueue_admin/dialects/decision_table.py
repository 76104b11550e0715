"""The part of a decision table common to all databases: its two columns, and operations of one statement."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from uuid import uuid4

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.decision_store import COORDINATOR, Decision, NeverDecided
from pgqueue_admin.dialects.errors import AlreadyExists, Locked
from pgqueue_admin.dialects.table_fault import TableFault


class DecisionTable(ABC):
    """Part of DecisionStore (dialects.decision_store)."""

    def __init__(self, sql: Any, address: Address, decide: Any):
        """``sql``: the dialect. ``decide``: the statement that inserts a decision, composed with the address."""
        self.address = address
        self._dialect, self._sql, self._decide = sql, sql.decision, decide
        self._creation = self._sql.create(table=address)

    @abstractmethod
    def _try_deciding(self, session: Session, command: Command) -> None:
        """Insert the decision, waiting briefly for a concurrent insert of the same. Raises AlreadyExists, Locked."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        rows = session.all(self._sql.columns(), {"schema": self.address.schema, "name": self.address.table})
        found = {row.name: row for row in rows}
        name, cure = self._dialect.canonical(self.address), self._dialect.written(self._creation)
        if not found:
            said = f"The table {name} of decisions does not exist: endpoint.create_queues() makes it."
            yield TableFault(said, cure, True)
        elif "Id" not in found or not found["Id"].is_unique or "Databases" not in found:
            yield TableFault(f"{name} is no table of decisions: it needs Id, a unique key, and Databases.", cure, True)
        else:
            yield from self._other_faults(found)

    def _other_faults(self, columns: dict[str, Any]) -> Iterator[TableFault]:
        """Further faults of a table whose columns are right."""
        yield from ()

    def identity(self, session: Session) -> str:
        query = self._sql.identity(table=self.address)
        if known := session.value(query, {"id": COORDINATOR}):
            return str(known)
        session.run(self._sql.identify(table=self.address), {"id": COORDINATOR, "identity": uuid4().hex})
        return str(session.value(query, {"id": COORDINATOR}))

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        return self._decide, {"id": id, "databases": ",".join(databases)}

    def decided(self, session: Session) -> list[Decision]:
        rows = session.all(self._sql.decided(table=self.address), {"id": COORDINATOR})
        return [Decision(row.id, tuple(row.names.split(","))) for row in rows]

    def outcome(self, session: Session, id: str) -> bool | None:
        try:
            with session.transaction():
                self._try_deciding(session, self.deciding(id, ["none"]))
                raise NeverDecided
        except NeverDecided:
            return False
        except AlreadyExists:
            return True
        except Locked:
            return None

    def forget(self, session: Session, ids: Collection[str]) -> None:
        session.run(self._sql.forget(table=self.address), {"ids": list(ids)})
