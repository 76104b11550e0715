"""Checks that queue tables have what receivers and senders need: for queue pages, a warning and ``manage.py check``."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pgqueue_admin.alerts.periodic_looks import PeriodicLook
from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport import SettingsRefused, checks
from pgqueue_admin.workers.processes.endpoint_settings import of_row

EVERY = 300.0  # seconds between two looks of the alerter


def _of_queue(dialect: Dialect, address: Address, session: Connection) -> Iterator[TableFault]:
    return dialect.queue_store(address).faults(session)


_LOOKS: dict[str, Callable[[Dialect, Address, Connection], Iterator[TableFault]]] = {
    TableKind.INPUT: _of_queue,
    TableKind.ERROR: _of_queue,
    TableKind.AUDIT: _of_queue,
    TableKind.DELAYED: lambda dialect, address, session: dialect.delayed_store(address, address).faults(session),
    TableKind.SUBSCRIPTION: lambda dialect, address, session: dialect.subscription_store(address).faults(session),
}


def faults(of: QueueDatabase, session: Connection, address: Address, kind: str) -> list[TableFault]:
    """Return faults of one table; none for a kind that nobody receives from. Reads the catalog."""
    look = _LOOKS.get(kind)
    return list(look(of.dialect, address, session)) if look else []


def of_endpoint(of: QueueDatabase, session: Connection, row: Endpoint) -> list[TableFault]:
    """Return the faults that its processes would report at start, of every table they use."""
    if row.kind == Endpoint.Kind.LEASE:
        return _of_lease_queue(of, session)
    try:
        return checks.faults(Engine(row.name, of.dsn, settings=of_row(row), schema=row.schema), session)
    except SettingsRefused as error:
        return [TableFault(f"{row.name} cannot run with its settings: {error}", "Change them on its page.", stops=True)]


def _of_lease_queue(of: QueueDatabase, session: Connection) -> list[TableFault]:
    if of.dialect.leases and of.dialect.leases.is_installed(session):
        return []
    return [TableFault("The tables of the lease queue are not there.", "manage.py engine_schema", stops=True)]


def every_fault(of: QueueDatabase, session: Connection, ours: list[Endpoint]) -> list[TableFault]:
    """Return faults of our endpoints' tables and of all others, each once; first those that stop one of ours."""
    own = [fault for row in ours for fault in of_endpoint(of, session, row)]
    found = discovery.find(session, of.schemas)
    others = [fault for table in found for fault in faults(of, session, table.address, table.kind)]
    told = dict.fromkeys(fault.said for fault in own)
    theirs = [fault._replace(stops=False) for fault in others if fault.said not in told]
    return sorted([*dict.fromkeys(own), *theirs], key=lambda fault: not fault.stops)


class FaultyTable(NamedTuple):
    """``table``: the canonical address, with the alias of its database."""

    table: str
    faults: tuple[TableFault, ...]


class TableFaultWatch(PeriodicLook[list[FaultyTable]]):
    """A database that does not answer keeps its last result: another warning reports the outage."""

    def __init__(self) -> None:
        super().__init__(EVERY)
        self._seen: dict[str, list[FaultyTable]] = {}

    def _look(self) -> list[FaultyTable]:
        """Raises DatabaseError of a database that never answered: then nothing is judged."""
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
    with of.read_session() as session:
        found = (
            FaultyTable(of.dialect.canonical(each.address), tuple(faults(of, session, each.address, each.kind)))
            for each in discovery.find(session, of.schemas)
        )
        return [each for each in found if each.faults]
