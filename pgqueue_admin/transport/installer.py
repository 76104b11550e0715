"""Makes the tables of an endpoint, in the original's order, each where it is missing (wire sheet 1.5)."""

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables import body_column
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.addresses import Addressing


def create(
    connection: Connection, subscriptions: Subscriptions, queues: list[TableQueue], delayed: DelayedTable
) -> None:
    """Safe beside others who make the same; each table is a commit of its own."""
    subscriptions.create(connection)
    for queue in queues:
        queue.create(connection)
    delayed.create(connection)


def add_body_columns(connection: Connection, dialect: Dialect, queues: list[TableQueue], delayed: DelayedTable) -> None:
    for address in [*(queue.address for queue in queues), delayed.address]:
        body_column.add(connection, dialect, address)


def sent_to(addressing: Addressing, settings: EndpointSettings) -> list[TableQueue]:
    """Queues that others receive from and that an endpoint cannot do without."""
    named = [settings.error_queue, settings.audit_queue]
    return [TableQueue(addressing.dialect, addressing.resolve(each)) for each in named if each]
