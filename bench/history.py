"""What history is measured on: an archive that grows, its driver, and ninety days of figures."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.pipeline.sources.looking import for_looking

ENDPOINTS, TYPES, DAYS = 10, 2, 90
# 50 messages a second, one in ten of them failed; headers of 900 bytes, bodies of 300
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
_FIGURES = """
insert into pgqueue_rollup (batch_id, grain, at, queue, endpoint, type, result, exception, messages, skewed, critical,
  critical_n, processing, processing_n, delivery, delivery_n)
select %(batch)s, grain, at, 'Endpoint' || mod(kind, %(endpoints)s::int), 'Endpoint' || mod(kind, %(endpoints)s::int),
  'Shop.Message' || kind / %(endpoints)s::int, case when failed then 'failed' else 'success' end,
  case when failed then 'Shop.CardRefused' else '' end, 4000, 0, b, c, b, c, b, c
from (values ('hour', interval '1 hour'), ('day', interval '1 day')) as grains (grain, step),
  generate_series(0, %(endpoints)s::int * %(types)s::int - 1) kind, (values (true), (false)) as results (failed),
  generate_series(date_trunc('day', now()) - %(days)s::int * interval '1 day', now(), step) at,
  (select array_agg(n) as b, array_agg(20 + mod(n, 7)) as c from generate_series(200, 379) n) histogram
"""

# one in 25 s, of 40 kinds; a third succeeded when they were tried again
_FAILED = """
with failed as (
  select n, now() - n * interval '25 seconds' as at, 'Endpoint' || mod(n, %(endpoints)s::int) as queue,
    'Shop.Message' || mod(n / 7, %(types)s::int) as type
  from generate_series(1, %(days)s::int * 86400 / 25) n
), failures as (
  insert into pgqueue_failurerollup (batch_id, at, fingerprint, queue, endpoint, type, exception, message, messages,
    first_at, last_at)
  select %(batch)s, date_trunc('minute', at), lpad(to_hex(mod(n, 40)), 16, '0'), queue, queue, type, 'Shop.CardRefused',
    'Card <n> was refused', 1, at, at
  from failed
)
insert into pgqueue_storypart (batch_id, message_id, queue, endpoint, type, exception, failed, succeeded, first_at,
  last_failed_at, last_succeeded_at)
select %(batch)s, md5('failed ' || n)::uuid::text, queue, queue, type, 'Shop.CardRefused', 1, (mod(n, 3) = 0)::int, at,
  at, case when mod(n, 3) = 0 then at + interval '1 minute' end
from failed
"""


class Archive:
    """An archive that grows, and a driver that reads it."""

    def __init__(self, dsn: str, stack: ExitStack):
        from pgqueue_admin.pipeline.driver import Driver

        self.dsn = dsn
        self.connection = stack.enter_context(postgresql().connect(dsn))
        self.driver = Driver("bench", many=sys.maxsize)  # compaction is a job of its own, and no part of a batch
        self.rows = 0
        stack.callback(self.close)

    def close(self) -> None:
        self.driver.close()

    def fill(self, rows: int) -> None:
        lay_out(self.connection, self.rows + 1, rows)
        self.rows += rows

    def holding(self, rows: int) -> Self:
        """So many, at least, are in history."""
        if self.rows < rows:
            self.fill(rows - self.rows)
            self.driver.turn()
        return self

    def selects(self, most: int) -> list[str]:
        """Of a batch as the driver would plan it now, without a trace in the ledger."""
        from pgqueue_admin.pipeline.plan import planning
        from pgqueue_admin.pipeline.sources import selects, tables
        from pgqueue_admin.records.models import HistoryBatch

        (archive,) = tables.sources(self.connection)
        found = planning.by_snapshots(self.connection, archive, most)
        assert found is not None
        known = {name: getattr(found, name) for name in ("seq_lo", "seq_hi", "rows", "snapshot_from", "snapshot_to")}
        return selects.selects(self.connection, HistoryBatch(source=archive, **known), parts=2)


def lay_out(connection: Connection, first: int, rows: int) -> None:
    insert(connection, first, rows)
    connection.run("vacuum analyze messages.message_archive")


def insert(connection: Connection, first: int, rows: int) -> None:
    """Messages ``first`` and on."""
    times = {"sent": "at", "started": "at + wait", "ended": "at + wait + work"}
    statement = _FILL
    for name, instant in times.items():
        statement = statement.replace(f"{{{name}}}", _WIRE.format(instant))
    known = {"first": first, "last": first + rows - 1, "endpoints": ENDPOINTS, "types": TYPES}
    connection.run(statement, known)


def figures(connection: Connection) -> None:
    """Rollups of DAYS days, 180 buckets each, as of a queue whose timings vary, and 311,040 that failed; cut as beat
    does."""
    from pgqueue_admin.pipeline import ledger
    from pgqueue_admin.pipeline.figures import cut_steps

    batch = connection.value("select min(id) from pgqueue_historybatch")
    for made in (_FIGURES, _FAILED):
        connection.run(made, {"batch": batch, "endpoints": ENDPOINTS, "types": TYPES, "days": DAYS})
    connection.run("vacuum analyze pgqueue_rollup, pgqueue_failurerollup, pgqueue_storypart")
    while cut_steps.cut(ledger.complete_to()):
        pass


def copied(dsn: str, selects: list[str]) -> None:
    """The floor of reading: each statement as a binary COPY of a psql of its own, all at once, to nowhere.

    Its sessions are set as the driver's are: the server goes the same ways.
    """
    psql = binaries.postgresql() / "psql"
    commands: list[list[str | Path]] = [
        [psql, for_looking(dsn), "-qXc", f"copy ({each}) to stdout (format binary)"] for each in selects
    ]
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    if any([child.wait() for child in children]):
        raise SystemExit("psql could not copy the batch.")


def server(folder: Path) -> PostgreSQL:
    started = PostgreSQL(folder / "postgresql", conf={"max_wal_size": "8GB", "shared_buffers": "512MB"})
    started.start()
    with postgresql().connect(started.dsn()) as admin:
        admin.run("create database bench")
    return started
