"""Creates an endpoint's missing tables, in NServiceBus' order (wire sheet 1.5)."""

from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.addresses import Addressing


def create(session: Session, subscriptions: Subscriptions, queues: list[TableQueue], delayed: DelayedTable) -> None:
    """Create tables with a commit each; safe for concurrent callers."""
    subscriptions.create(session)
    for queue in queues:
        queue.create(session)
    delayed.create(session)


def add_body_columns(session: Session, queues: list[TableQueue], delayed: DelayedTable) -> None:
    for queue in queues:
        queue.add_body_column(session)
    delayed.add_body_column(session)


def sent_to(addressing: Addressing, settings: EndpointSettings) -> list[TableQueue]:
    """Queues that an endpoint needs to send to: error and audit queue."""
    named = [settings.error_queue, settings.audit_queue]
    return [TableQueue(addressing.dialect, addressing.resolve(each)) for each in named if each]
