"""The data of history benchmarks: a growing archive and its driver."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.sources.read_sessions import for_looking

ENDPOINTS, TYPES = 10, 2
WARM = 2  # warm-up rounds, not counted: the JVM still compiles
# 50 messages a second, one in ten failed; headers of 900 bytes, bodies of 300
_FILL = """
insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, message_id, message_type,
  headers, body, exception_type, exception_message, stack_trace, endpoint, sent_at, died_at)
select at, '{}', case when failed then 'failed' else 'success' end::public.message_status, 'bench', 'transport', queue,
  id, type, '{"NServiceBus.MessageId":"' || id || '","NServiceBus.ConversationId":"' || id || '",'
  || '"NServiceBus.EnclosedMessageTypes":"' || type || ', Shop, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null",'
  || '"NServiceBus.TimeSent":"' || {sent} || '","NServiceBus.ProcessingStarted":"' || {started} || '",'
  || '"NServiceBus.ProcessingEnded":"' || {ended} || '","NServiceBus.ProcessingEndpoint":"' || queue || '",'
  || '"NServiceBus.ContentType":"application\\/json","NServiceBus.OriginatingMachine":"' || repeat('m', 280) || '"}',
  convert_to('{"OrderId":' || n || ',"Note":"' || repeat('x', 270) || '"}', 'UTF8'),
  case when failed then 'Shop.CardRefused' end, case when failed then 'Card ' || n || ' was refused' end,
  case when failed then '   at Shop.Orders.Handle(PlaceOrder message) in /src/Orders.cs:line ' || mod(n, 9) end,
  queue, at at time zone 'utc', (at + wait + work) at time zone 'utc'
from (
  select n, mod(n, 10) = 0 as failed, 'Endpoint' || mod(n, %(endpoints)s::int) as queue, md5(n::text)::uuid::text as id,
    'Shop.Message' || mod(n / 7, %(types)s::int) as type, timestamp '2026-11-01' + n * interval '20 ms' as at,
    (10 + mod(n * 7919::bigint, 900)) * interval '1 ms' as wait,
    (1 + mod(n * 104729::bigint, 300)) * interval '1 ms' as work
  from generate_series(%(first)s::int, %(last)s::int) n
) messages
"""
_WIRE = "to_char({}, 'YYYY-MM-DD HH24:MI:SS:US \"Z\"')"


class Archive:
    """A growing archive and the driver that reads it."""

    def __init__(self, dsn: str, stack: ExitStack):
        from pgqueue_admin.history.batch_loop import BatchLoop

        self.dsn = dsn
        self.connection = stack.enter_context(postgresql().connect(dsn, for_handlers=True))
        self.driver = BatchLoop("bench", many=sys.maxsize)  # compaction is a job of its own, not part of a batch
        self.rows = 0
        stack.callback(self.close)

    def close(self) -> None:
        self.driver.close()

    def fill(self, rows: int) -> None:
        lay_out(self.connection, self.rows + 1, rows)
        self.rows += rows

    def holding(self, rows: int) -> Self:
        """Ensure that at least ``rows`` are in history."""
        if self.rows < rows:
            self.fill(rows - self.rows)
            self.driver.run_once()
        return self

    def selects(self, most: int) -> list[str]:
        """The statements of the batch that the driver would plan now, without recording it in the ledger."""
        from pgqueue_admin.history.plan import planning
        from pgqueue_admin.history.sources import partition_queries as selects
        from pgqueue_admin.history.sources import tables
        from pgqueue_admin.models import HistoryBatch

        (archive,) = tables.sources(self.connection)
        found = planning.by_snapshots(self.connection, archive, most)
        known = {name: getattr(found, name) for name in ("seq_lo", "seq_hi", "rows", "snapshot_from", "snapshot_to")}
        return selects.selects(self.connection, HistoryBatch(source=archive, **known), parts=2)

    def raw(self, selects: list[str], columns: Sequence[str] = ()) -> Any:
        """The rows as Spark would read them; ``columns`` limits them to those that ``selects`` query."""
        from pyspark.sql.types import StructType

        from pgqueue_admin.history.spark.data_frames import of_queue
        from pgqueue_admin.history.spark.schemas import RAW

        schema = StructType([RAW[name] for name in columns or RAW.fieldNames()])
        return of_queue(self.driver._session(), for_looking(self.dsn), selects, schema)

    def read(self, selects: list[str], columns: Sequence[str] = ()) -> None:
        thrown_away(self.raw(selects, columns))


def thrown_away(rows: Any) -> None:
    """Read the rows in Spark and discard them."""
    rows.write.format("noop").mode("overwrite").save()


def lay_out(connection: Connection, first: int, rows: int) -> None:
    insert(connection, first, rows)
    connection.run("vacuum analyze messages.message_archive")


def insert(connection: Connection, first: int, rows: int) -> None:
    """Insert messages from ``first`` on."""
    times = {"sent": "at", "started": "at + wait", "ended": "at + wait + work"}
    statement = _FILL
    for name, instant in times.items():
        statement = statement.replace(f"{{{name}}}", _WIRE.format(instant))
    known = {"first": first, "last": first + rows - 1, "endpoints": ENDPOINTS, "types": TYPES}
    connection.run(statement, known)


def copied(dsn: str, selects: list[str]) -> None:
    """The floor of reading: binary COPY of each statement in its own psql, all at once, discarded.

    Their sessions have the driver's settings, so the server uses the same plans.
    """
    psql = binaries.postgresql() / "psql"
    commands: list[list[str | Path]] = [
        [psql, for_looking(dsn), "-qXc", f"copy ({each}) to stdout (format binary)"] for each in selects
    ]
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    if any([child.wait() for child in children]):
        raise SystemExit("psql could not copy the batch.")


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def server(folder: Path) -> PostgreSQL:
    started = PostgreSQL(folder / "postgresql", conf={"max_wal_size": "8GB", "shared_buffers": "512MB"})
    started.start()
    with postgresql().connect(started.dsn(), for_handlers=True) as admin:
        admin.run("create database bench")
    return started
