"""A table of decisions on PostgreSQL (contract: dialects.decision_store.DecisionStore)."""

from collections.abc import Collection, Iterator, Sequence
from uuid import uuid4

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.decision_store import COORDINATOR, Decision, NeverDecided
from pgqueue_admin.dialects.errors import AlreadyExists, Locked
from pgqueue_admin.dialects.postgresql import addressing, table_exists
from pgqueue_admin.dialects.postgresql.query import written
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault


class PostgreSQLDecisions:
    def __init__(self, folder: StatementFolder, address: Address):
        self.address = address
        self._folder, self._sql = folder, folder.decision
        self._decide = self._sql.decide(table=address, is_written=folder.outbox.is_written)

    def create(self, session: Session) -> None:
        table_exists.create(session, self._folder, self.address, self._sql.create(table=self.address))

    def faults(self, session: Session) -> Iterator[TableFault]:
        rows = session.all(self._sql.columns(), {"schema": self.address.schema, "name": self.address.table})
        found = {row.name: row.is_unique for row in rows}
        name, cure = addressing.canonical(self.address), written(self._sql.create(table=self.address))
        if not found:
            said = f"The table {name} of decisions does not exist: endpoint.create_queues() makes it."
            yield TableFault(said, cure, True)
        elif not found.get("Id") or "Databases" not in found:
            yield TableFault(f"{name} is no table of decisions: it needs Id, a unique key, and Databases.", cure, True)

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
        return [Decision(row.id, tuple(row.databases.split(","))) for row in rows]

    def outcome(self, session: Session, id: str) -> bool | None:
        try:
            with session.transaction():
                session.run(self._sql.wait_briefly())
                session.run(*self.deciding(id, ["none"]))
                raise NeverDecided
        except NeverDecided:
            return False
        except AlreadyExists:
            return True
        except Locked:
            return None

    def forget(self, session: Session, ids: Collection[str]) -> None:
        session.run(self._sql.forget(table=self.address), {"ids": list(ids)})
