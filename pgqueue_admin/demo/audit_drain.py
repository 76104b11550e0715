"""Purges expired copies from the demo's audit queue, which no other program reads."""

from pgqueue_admin.demo import contracts
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.workers.processes.registry import ProcessContext

EVERY = 600.0  # seconds


def run(web: ProcessContext) -> None:
    """Purge at intervals until the process ends."""
    while not web.stopping.wait(EVERY):
        clear(web.endpoint)


def clear(web: Endpoint) -> int:
    """Delete expired copies; return how many."""
    try:
        with web.connect() as session:
            return TableQueue(web.dialect, web.dialect.parse_address(contracts.AUDIT_QUEUE)).purge(session, True)
    except DatabaseError:
        return 0  # the engine reports the outage; the next round tries again
