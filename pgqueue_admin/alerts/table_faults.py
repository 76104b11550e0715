"""Which tables, of every database that is looked at, lack a column or an index that receivers and senders need."""

from typing import NamedTuple

from pgqueue_admin.alerts import table_checks
from pgqueue_admin.alerts.periodic_looks import PeriodicLook
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database
from pgqueue_admin.monitor import discovery

EVERY = 300.0  # seconds between two looks of the alerter


class FaultyTable(NamedTuple):
    """``table``: its canonical address, with the alias of its database."""

    table: str
    faults: tuple[TableFault, ...]


class TableFaultWatch(PeriodicLook[list[FaultyTable]]):
    """A database that does not answer keeps what was last seen there: another warning says that it is away."""

    def __init__(self) -> None:
        super().__init__(EVERY)
        self._seen: dict[str, list[FaultyTable]] = {}

    def _look(self) -> list[FaultyTable]:
        """Raises DatabaseError of a database of which nothing was ever seen: then nothing is judged."""
        databases = {of.alias: of for of in (queue_database(), *looked_at())}
        self._seen = {alias: found for alias, found in self._seen.items() if alias in databases}
        for alias, of in databases.items():
            try:
                self._seen[alias] = _of_database(of)
            except DatabaseError:
                if alias not in self._seen:
                    raise
        return [each for found in self._seen.values() for each in found]


def _of_database(of: QueueDatabase) -> list[FaultyTable]:
    with of.reading() as session:
        found = (
            FaultyTable(
                of.dialect.canonical(each.address), tuple(table_checks.faults(of, session, each.address, each.kind))
            )
            for each in discovery.find(session, of.schemas)
        )
        return [each for each in found if each.faults]
