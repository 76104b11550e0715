"""A table of decisions on PostgreSQL (contract: dialects.decision_store.DecisionStore)."""

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.decision_table import DecisionTable
from pgqueue_admin.dialects.postgresql import table_exists
from pgqueue_admin.dialects.statements import StatementFolder


class PostgreSQLDecisions(DecisionTable):
    def __init__(self, folder: StatementFolder, address: Address):
        super().__init__(folder, address, folder.decision.decide(table=address, is_written=folder.outbox.is_written))

    def create(self, session: Session) -> None:
        table_exists.create(session, self._dialect, self.address, self._creation)

    def _try_deciding(self, session: Session, command: Command) -> None:
        session.run(self._sql.wait_briefly())
        session.run(*command)
