"""Checks an endpoint's tables; each fault has a statement that repairs it."""

import logging
from collections.abc import Iterator

from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.transport import installer
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.errors import QueueUnfit

log = logging.getLogger("pgqueue_admin.transport")


def faults(endpoint: Client, session: Session) -> list[TableFault]:
    """All faults of all tables that the endpoint uses; none if send-only. Reads only the catalog."""
    return [] if endpoint.send_only else list(_faults(endpoint, session))


def insist(found: list[TableFault]) -> None:
    """Log each fault as ``manage.py check`` does. Raises QueueUnfit if receiving is impossible."""
    if stopping := [fault for fault in found if fault.stops]:
        raise QueueUnfit("\n".join(map(str, stopping)), " ".join(fault.said for fault in stopping))
    for fault in found:
        log.warning("%s", fault)


def _faults(endpoint: Client, session: Session) -> Iterator[TableFault]:
    readable = endpoint.settings.create_message_body_computed_column
    for queue in [*endpoint.queues, *installer.sent_to(endpoint.addressing, endpoint.settings)]:
        found = list(queue.faults(session, readable))
        yield from found if queue in endpoint.queues else (fault._replace(stops=False) for fault in found)
    yield from endpoint.delayed.faults(session, readable)
    yield from endpoint.subscriptions.faults(session)
