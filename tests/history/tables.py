"""Tables that the ledger plans, and reading them without Spark."""

from typing import Any

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.models import HistorySource, Queue
from pgqueue_admin.transport.tables.table_queue import TableQueue


def died(connection: Any, number: int = 1) -> None:
    for _ in range(number):
        store.archive_failed(connection, DeadMessage(queue='"public"."Billing"'))


def read(connection: Any, source: HistorySource, most: int = 100) -> list[int]:
    """Plan and end batches until none is left; return the numbers their SELECTs read, in order."""
    found: list[int] = []
    while batch := planning.plan_batch(connection, source, most):
        found += [row.seq for part in selects(connection, batch, 2) for row in connection.all(part)]
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
        source.refresh_from_db()
    return found


def told(source: HistorySource) -> str:
    """The ledger's reason for not reading it now."""
    source.refresh_from_db()
    return source.blocked_reason


def audit(connection: Any) -> HistorySource:
    """An empty audit queue, as the ledger knows it."""
    audit_queue(connection)
    return next(each for each in sources(connection) if each.table != ARCHIVE)


def audit_queue(connection: Any, name: str = "audit", schema: str = "public") -> None:
    TableQueue(postgresql(), Address(schema, name)).create(connection)
    Queue.objects.create(schema=schema, table=name, kind="audit")


def put(connection: Any, name: str = "audit") -> None:
    connection.run(f"insert into {name} (id, headers, body) values (gen_random_uuid(), '{{}}', '')")
