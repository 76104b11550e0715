"""The same batch beside little and beside much history: two databases with a driver each, in turns."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from bench import children, history_archive
from bench import history_archive as history
from bench.children import Child, side
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

# A long history made from its first batch: its ledger row, files and figures are repeated, each time later. The result
# equals that of reading as many rows: a ledger row per batch, its minutes, hours, days, failures and retry outcomes,
# and its rows in files as large as compaction makes them. The archive keeps its newest part: older rows count as pruned
# behind the ledger.
BATCH = 100_000  # rows, of 2,000 seconds
A_DAY = 42  # batches, 34 minutes apart: whole minutes, and none reaches into the next day
IN_A_FILE = 14  # batches
ARCHIVED = 500_000
_LATER = f"(n / {A_DAY} * 86400 + mod(n, {A_DAY}) * 2040) * interval '1 s'"
_OF_BATCH = "'id', nextval(pg_get_serial_sequence('{table}', 'id')), 'batch_id', batch_id + n"
_MADE = {
    "pgqueue_console.pgqueue_historybatch": f"'id', id + n, 'token', gen_random_uuid(), 'seq_lo', seq_lo + n * {BATCH},"
    f" 'seq_hi', seq_hi + n * {BATCH}, 'seq_checksum', seq_checksum + n::numeric * {BATCH} * rows",
    "pgqueue_console.pgqueue_rollup": f"{_OF_BATCH}, 'at', date_trunc(grain, at + {_LATER})",
    "pgqueue_console.pgqueue_failurerollup": f"{_OF_BATCH}, 'at', at + {_LATER}, 'first_at', first_at + {_LATER},"
    f" 'last_at', last_at + {_LATER}",
    "pgqueue_console.pgqueue_retryoutcome": f"{_OF_BATCH}, 'message_id', md5(message_id || n)::uuid,"
    f" 'first_at', first_at + {_LATER},"
    f" 'last_failed_at', last_failed_at + {_LATER}, 'last_succeeded_at', last_succeeded_at + {_LATER}",
}
_COPY = """
insert into {table} select made.* from {table} one, generate_series(1, %(copies)s::int) n,
  lateral jsonb_populate_record(one, jsonb_build_object({changes})) made
"""
_FIRST = """
select path, day, file.rows, batch_id as batch from pgqueue_console.pgqueue_datafile file
join pgqueue_console.pgqueue_filebatch part on part.file_id = file.id
"""
_FILE = """
with file as (
  insert into pgqueue_console.pgqueue_datafile (source_id, dataset, path, day, rows, bytes, added_at)
  select id, 'history', %(path)s, %(day)s::date, %(rows)s::int8, %(bytes)s::int8, now()
  from pgqueue_console.pgqueue_historysource
  returning id
)
insert into pgqueue_console.pgqueue_filebatch (file_id, batch_id, rows)
select file.id, batch, %(each)s::int8 from file, unnest(%(batches)s::int8[]) batch
"""
_READ = """
update pgqueue_console.pgqueue_historysource set snapshot = pg_current_snapshot()::text, snapshot_target = '',
  seq_done = 0, watermark = clock_timestamp();
select setval(pg_get_serial_sequence('pgqueue_console.pgqueue_historybatch', 'id'), max(id))
from pgqueue_console.pgqueue_historybatch
"""
_RENUMBER = "alter table messages.message_archive alter column seq restart with {}"
_SILENT = "alter table messages.message_archive {} trigger dead_message_trigger"


def grow(connection: Connection, folder: Path, rows: int) -> None:
    """Repeat one batch of BATCH rows up to ``rows``."""
    copies = rows // BATCH - 1
    for table, changes in _MADE.items():
        connection.run(_COPY.format(table=table, changes=changes.format(table=table)), {"copies": copies})
    for known in files(connection, folder, copies):
        connection.run(_FILE, known)
    archive(connection, rows)
    connection.run(_READ)


def files(connection: Connection, folder: Path, copies: int) -> Iterator[dict[str, Any]]:
    """Write the files; yield their manifest entries."""
    import pyarrow.parquet

    from pgqueue_admin.history.storage.layout import VERSION

    parts = connection.all(_FIRST)  # one, or two if no other process was busy
    read = [pyarrow.parquet.ParquetFile(folder / part.path).read() for part in parts]
    rows = pyarrow.concat_tables(read).sort_by([("endpoint", "ascending"), ("ended_at", "ascending")])
    (day,), (batch,) = ({getattr(part, each) for part in parts} for each in ("day", "batch"))
    for (days, _), numbers in groupby(range(1, copies + 1), lambda n: (n // A_DAY, n % A_DAY // IN_A_FILE)):
        named, batches = day + timedelta(days), list(numbers)
        path = f"{VERSION}/table-0001-{named}-{uuid4()}/day={named}/part-0.zstd.parquet"
        size = write(folder / path, rows, batches)
        made = {"rows": len(rows) * len(batches), "each": len(rows), "batches": [batch + n for n in batches]}
        yield {"path": path, "day": named, "bytes": size, **made}


def write(path: Path, rows: Any, batches: list[int]) -> int:
    import pyarrow.parquet

    path.parent.mkdir(parents=True)
    with pyarrow.parquet.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for n in batches:
            writer.write_table(moved(rows, n))
    return path.stat().st_size


def moved(rows: Any, n: int) -> Any:
    """The rows of the batch ``n`` places later."""
    import pyarrow
    import pyarrow.compute as compute

    later = pyarrow.scalar(timedelta(days=n // A_DAY, minutes=34 * (n % A_DAY)), pyarrow.duration("us"))
    changes = {"seq": n * BATCH, "batch": n, "sent_at": later, "started_at": later, "ended_at": later}
    for name, change in changes.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), compute.add(rows[name], change))
    return rows


def archive(connection: Connection, rows: int) -> None:
    """Keep its last rows, without NOTIFY for the dead ones."""
    connection.run(_RENUMBER.format(rows - ARCHIVED + 1))
    connection.run(_SILENT.format("disable"))
    history.insert(connection, rows - ARCHIVED + 1, ARCHIVED)
    connection.run(_SILENT.format("enable"))


HISTORY_ROWS = int(os.environ.get("HISTORY_ROWS", 10_000_000))
TURN = 600.0  # longest time of one turn, in seconds
AFTER = 6 * 24 * 180_000  # messages: later rows end at unused times, and at the same time of day


class World(NamedTuple):
    connection: Connection
    driver: Child


def flat(server: PostgreSQL, folder: Path, rows: int, rounds: int) -> Row:
    with ExitStack() as stack:
        little, much = (world(stack, server, folder, name) for name in ("little", "much"))
        for each in (little, much):
            history_archive.lay_out(each.connection, 1, BATCH)
            children.ask(each.driver)
        for each in (little, much):
            children.answer(each.driver, TURN)
        grow(much.connection, folder / "much/history", HISTORY_ROWS)
        found = [share(little, much, AFTER + number * rows, rows) for number in range(rounds + 1)]
    name = f"{rows:,} rows beside {HISTORY_ROWS:,} of history, against {BATCH:,}"
    return row(name, 100 * statistics.median(found[1:]), "%", floor=None, target=110)


def share(little: World, much: World, first: int, rows: int) -> float:
    """Time with much history over time with little; the order alternates."""
    order = (little, much) if first // rows % 2 else (much, little)
    taken = {each: turn(each, first, rows) for each in order}
    return taken[much] / taken[little]


def turn(world: World, first: int, rows: int) -> float:
    """The seconds that the driver takes for ``rows`` more messages."""
    history_archive.lay_out(world.connection, first, rows)
    children.ask(world.driver)
    return children.answer(world.driver, TURN)[0]


def world(stack: ExitStack, server: PostgreSQL, folder: Path, name: str) -> World:
    with postgresql().connect(server.dsn(), for_handlers=True) as admin:
        admin.run(f"create database {name}")
    (folder / name).mkdir()
    environ = {"DATABASE_URL": server.dsn(name), "PGQUEUE_STATE_DIR": str(folder / name)}
    for act in ("migrate", "engine_schema"):
        command = [sys.executable, "manage.py", act, "-v0"]
        subprocess.run(command, env={**os.environ, **environ}, check=True, timeout=TURN, stderr=subprocess.DEVNULL)
    return World(
        stack.enter_context(postgresql().connect(server.dsn(name))), stack.enter_context(side("turns", **environ))
    )
