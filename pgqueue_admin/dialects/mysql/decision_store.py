"""A table of decisions on MySQL or MariaDB (contract: dialects.decision_store.DecisionStore)."""

from collections.abc import Iterator
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.decision_table import DecisionTable
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.mysql.query import BoundedQuery
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault


class MySQLDecisions(DecisionTable):
    def __init__(self, folder: StatementFolder, address: Address):
        super().__init__(folder, address, folder.decision.decide(table=address))
        self._bounded = BoundedQuery(self._decide)
        self._bounded.wait, self._bounded.as_before = self._sql.wait_briefly(), self._sql.wait_as_before()

    def create(self, session: Session) -> None:
        session.run(self._creation)

    def _other_faults(self, columns: dict[str, Any]) -> Iterator[TableFault]:
        if columns["Id"].engine != "InnoDB":
            name = IDENTIFIERS.table(self.address)
            yield TableFault(f"{name} has no transactions.", f"alter table {name} engine = InnoDB", True)

    def _try_deciding(self, session: Session, command: Command) -> None:
        session.run(self._bounded, command[1])
