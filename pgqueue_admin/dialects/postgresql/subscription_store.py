"""The subscription table on PostgreSQL (contract: dialects.subscription_store.SubscriptionStore)."""

from collections.abc import Iterator

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.postgresql import table_exists
from pgqueue_admin.dialects.postgresql.table_checks import ExpectedTable
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault


class PostgreSQLSubscriptions:
    """Each call is one statement in the caller's transaction."""

    def __init__(self, sql: StatementFolder, address: Address):
        self.address = address
        self._folder = sql
        self._sql = sql.subscription

    def create(self, session: Session) -> None:
        table_exists.create(session, self._folder, self.address, self._sql.create(table=self.address))

    def faults(self, session: Session) -> Iterator[TableFault]:
        return ExpectedTable(session, self._folder, self.address).as_subscriptions()

    def subscribe(self, session: Session, endpoint: str, topic: str, queue: str) -> None:
        row = {"queueaddress": queue, "endpoint": endpoint, "topic": topic}
        session.run(self._sql.subscribe(table=self.address), row)

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        session.run(self._sql.unsubscribe(table=self.address), {"endpoint": endpoint, "topic": topic})

    def subscribers(self, session: Session, topics: list[str]) -> list[str]:
        rows = session.all(self._sql.subscribers(table=self.address), {"topics": topics})
        return [row.queueaddress for row in rows]
