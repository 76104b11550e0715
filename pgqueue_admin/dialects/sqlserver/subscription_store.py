"""The subscription table on SQL Server (contract: dialects.subscription_store.SubscriptionStore)."""

from collections.abc import Iterator

from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.sqlserver.transport_table import TransportTable
from pgqueue_admin.dialects.table_fault import TableFault


class SQLServerSubscriptions(TransportTable):
    """Each call is one statement in the caller's transaction."""

    noun, kind = "subscription", "subscription"
    creation = ("create",)

    def faults(self, session: Session) -> Iterator[TableFault]:
        found = self._columns(session)
        if not found:
            made = self._missing()
            yield made._replace(said=f"{made.said} Where endpoints share another, name that: subscription_table.")
        elif "Endpoint" in found and not found["Endpoint"].leads_an_index:
            yield self._fault("has no key of Endpoint and Topic: somebody could subscribe twice", "one_per_topic")

    def subscribe(self, session: Session, endpoint: str, topic: str, queue: str) -> None:
        row = {"queueaddress": queue, "endpoint": endpoint, "topic": topic}
        session.run(self._sql.subscribe(table=self.address), row)

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        session.run(self._sql.unsubscribe(table=self.address), {"endpoint": endpoint, "topic": topic})

    def subscribers(self, session: Session, topics: list[str]) -> list[str]:
        places = Query(", ".join(self._sql.topic(place=place) for place in range(len(topics))))
        params = {f"topic_{place}": topic for place, topic in enumerate(topics)}
        return [
            row.queueaddress for row in session.all(self._sql.subscribers(table=self.address, topics=places), params)
        ]
