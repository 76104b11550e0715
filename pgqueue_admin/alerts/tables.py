"""Whether queue tables have what receivers and senders need. One text for the queue's page and ``manage.py check``."""

from collections.abc import Callable, Iterator

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.tables import Kind
from pgqueue_admin.records.models import Endpoint
from pgqueue_admin.records.source import Source
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport import SettingsRefused, checks
from pgqueue_admin.transport.tables.table_checks import Fault, Table
from pgqueue_admin.workers.settings import of_row

_LOOKS: dict[str, Callable[[Table], Iterator[Fault]]] = {
    Kind.INPUT: lambda table: table.as_queue(readable=False),
    Kind.ERROR: lambda table: table.as_queue(readable=False),
    Kind.AUDIT: lambda table: table.as_queue(readable=False),
    Kind.DELAYED: lambda table: table.as_delayed(readable=False),
    Kind.SUBSCRIPTION: Table.as_subscriptions,
}


def faults(of: Source, session: Connection, address: Address, kind: str) -> list[Fault]:
    """Of one table that was found; none of a kind that nobody receives from. Reads the catalog."""
    look = _LOOKS.get(kind)
    return list(look(Table(session, of.dialect, address))) if look else []


def of_endpoint(of: Source, session: Connection, row: Endpoint) -> list[Fault]:
    """What its processes would say at their start, of every table they use."""
    try:
        return checks.faults(Engine(row.name, of.dsn, settings=of_row(row), schema=row.schema), session)
    except SettingsRefused as error:
        return [Fault(f"{row.name} cannot run with its settings: {error}", "Change them on its page.", stops=True)]


def every_fault(of: Source, session: Connection, ours: list[Endpoint]) -> list[Fault]:
    """Of every endpoint of ours, and of every other table found: each once, first what stops one of ours."""
    own = [fault for row in ours for fault in of_endpoint(of, session, row)]
    found = discovery.find(session, of.schemas)
    others = [fault for table in found for fault in faults(of, session, table.address, table.kind)]
    told = dict.fromkeys(fault.said for fault in own)
    theirs = [fault._replace(stops=False) for fault in others if fault.said not in told]
    return sorted([*dict.fromkeys(own), *theirs], key=lambda fault: not fault.stops)
