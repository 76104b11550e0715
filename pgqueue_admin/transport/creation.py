"""Makes the tables of an endpoint, in the original's order, each where it is missing (wire sheet 1.5)."""

from typing import TYPE_CHECKING

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport.tables import body_column
from pgqueue_admin.transport.tables.table_queue import TableQueue

if TYPE_CHECKING:
    from pgqueue_admin.transport.client import Client


def create(endpoint: "Client", connection: Connection) -> None:
    """Safe beside others who make the same; each table is a commit of its own."""
    if endpoint.send_only:
        return
    endpoint.subscriptions.create(connection)
    queues = [*sent_to(endpoint), *endpoint.queues]
    for queue in queues:
        queue.create(connection)
    endpoint.delayed.create(connection)
    if endpoint.settings.create_message_body_computed_column:
        for address in [*(queue.address for queue in queues), endpoint.delayed.address]:
            body_column.add(connection, endpoint.dialect, address)


def sent_to(endpoint: "Client") -> list[TableQueue]:
    """Queues that others receive from and that this endpoint cannot do without."""
    named = [endpoint.settings.error_queue, endpoint.settings.audit_queue]
    return [TableQueue(endpoint.dialect, endpoint.addressing.resolve(each)) for each in named if each]
