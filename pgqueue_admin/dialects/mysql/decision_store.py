"""A table of decisions on MySQL or MariaDB (contract: dialects.decision_store.DecisionStore)."""

from collections.abc import Collection, Iterator, Sequence
from uuid import uuid4

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.decision_store import COORDINATOR, Decision, NeverDecided
from pgqueue_admin.dialects.errors import AlreadyExists, Locked
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.mysql.query import BoundedQuery, written
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault


class MySQLDecisions:
    def __init__(self, folder: StatementFolder, address: Address):
        self.address, self._sql = address, folder.decision
        self._decide = self._sql.decide(table=address)
        self._try_deciding = BoundedQuery(self._decide)
        self._try_deciding.wait, self._try_deciding.as_before = self._sql.wait_briefly(), self._sql.wait_as_before()

    def create(self, session: Session) -> None:
        session.run(self._sql.create(table=self.address))

    def faults(self, session: Session) -> Iterator[TableFault]:
        rows = session.all(self._sql.columns(), {"schema": self.address.schema, "name": self.address.table})
        found = {row.name: row for row in rows}
        name, cure = IDENTIFIERS.table(self.address), written(self._sql.create(table=self.address))
        if not found:
            said = f"The table {name} of decisions does not exist: endpoint.create_queues() makes it."
            yield TableFault(said, cure, True)
        elif "Id" not in found or not found["Id"].is_unique or "Databases" not in found:
            yield TableFault(f"{name} is no table of decisions: it needs Id, a unique key, and Databases.", cure, True)
        elif found["Id"].engine != "InnoDB":
            yield TableFault(f"{name} has no transactions.", f"alter table {name} engine = InnoDB", True)

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
                session.run(self._try_deciding, {"id": id, "databases": "none"})
                raise NeverDecided
        except NeverDecided:
            return False
        except AlreadyExists:
            return True
        except Locked:
            return None

    def forget(self, session: Session, ids: Collection[str]) -> None:
        session.run(self._sql.forget(table=self.address), {"ids": list(ids)})
