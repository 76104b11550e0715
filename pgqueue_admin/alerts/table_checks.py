"""Whether queue tables have what receivers and senders need. One text for the queue's page and ``manage.py check``."""

from collections.abc import Callable, Iterator

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import QueueDatabase
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport import SettingsRefused, checks
from pgqueue_admin.transport.tables.table_checks import ExpectedTable, TableFault
from pgqueue_admin.workers.processes.endpoint_settings import of_row

_LOOKS: dict[str, Callable[[ExpectedTable], Iterator[TableFault]]] = {
    TableKind.INPUT: lambda table: table.as_queue(readable=False),
    TableKind.ERROR: lambda table: table.as_queue(readable=False),
    TableKind.AUDIT: lambda table: table.as_queue(readable=False),
    TableKind.DELAYED: lambda table: table.as_delayed(readable=False),
    TableKind.SUBSCRIPTION: ExpectedTable.as_subscriptions,
}


def faults(of: QueueDatabase, session: Connection, address: Address, kind: str) -> list[TableFault]:
    """Of one table that was found; none of a kind that nobody receives from. Reads the catalog."""
    look = _LOOKS.get(kind)
    return list(look(ExpectedTable(session, of.dialect, address))) if look else []


def of_endpoint(of: QueueDatabase, session: Connection, row: Endpoint) -> list[TableFault]:
    """What its processes would say at their start, of every table they use."""
    try:
        return checks.faults(Engine(row.name, of.dsn, settings=of_row(row), schema=row.schema), session)
    except SettingsRefused as error:
        return [TableFault(f"{row.name} cannot run with its settings: {error}", "Change them on its page.", stops=True)]


def every_fault(of: QueueDatabase, session: Connection, ours: list[Endpoint]) -> list[TableFault]:
    """Of every endpoint of ours, and of every other table found: each once, first what stops one of ours."""
    own = [fault for row in ours for fault in of_endpoint(of, session, row)]
    found = discovery.find(session, of.schemas)
    others = [fault for table in found for fault in faults(of, session, table.address, table.kind)]
    told = dict.fromkeys(fault.said for fault in own)
    theirs = [fault._replace(stops=False) for fault in others if fault.said not in told]
    return sorted([*dict.fromkeys(own), *theirs], key=lambda fault: not fault.stops)
