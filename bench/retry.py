"""Retrying a hundred thousand dead messages, at once and in stages, against their insert and delete in chunks alone.

The floor (floor.c over libpq) inserts as many messages in chunks and then deletes them in chunks, in one session. A
retry adds its frozen set, guards, marks, events and retried headers. A set of a tenth is retried as well: the peak
memory of the process must not grow with the size. ``ROUNDS`` and ``MESSAGES`` in the environment make it shorter;
``make bench-retry``.
"""

import os
import secrets
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench import floor
from bench.console import prepare
from bench.folder import temporary
from bench.parts import Part
from bench.parts import measure as measure_parts
from bench.table import Row, measured_in, row
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.transport.tables.table_queue import TableQueue

ROUNDS = int(os.environ.get("ROUNDS", 3))
MESSAGES = int(os.environ.get("MESSAGES", 100_000))
QUEUES = Address("public", "Parcels"), Address("public", "Floor"), Address("public", "Onward")
_DEAD = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    failed_queue, target_schema, target_table, endpoint, died_at)
select now(), '{}', 'failed', 'bench', 'transport', '"public"."Parcels"', concat('m-', n), 'Bench.Parcel', text,
    body, 'Bench.Refused', '"public"."Parcels"', 'public', 'Parcels', 'Parcels', now() - n * interval '1 ms'
from (select n, """
_TEXTS = """concat('{"NServiceBus.MessageId":"m-', n, '","NServiceBus.EnclosedMessageTypes":"Bench.Parcel",',
    '"NServiceBus.ContentType":"application\\/json","NServiceBus.FailedQ":"Parcels",',
    '"NServiceBus.ExceptionInfo.ExceptionType":"Bench.Refused"}') as text,
    convert_to(concat('{"Order":', n, ',"Note":"', repeat('x', 150), '"}'), 'UTF8') as body
from generate_series(1, %(messages)s) n"""


class Ran(NamedTuple):
    seconds: float
    megabytes: float  # peak memory of the process


class Bench:
    def __init__(self, server: PostgreSQL, program: Path):
        self._program = program
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database bench")
        self.dsn = os.environ["DATABASE_URL"] = server.dsn("bench")
        prepare()
        self.session = postgresql().connect(self.dsn, for_handlers=True)
        for queue in QUEUES:
            TableQueue(postgresql(), queue).create(self.session)

    def parts(self) -> dict[str, Part]:
        return {"at once": lambda: self.retried("at once"), "in stages": lambda: self.retried("in stages")}

    def retried(self, way: str) -> list[Row]:
        rates, floors, grown = [], [], []
        for _ in range(ROUNDS):
            floors.append(1 / self.floor())
            few, many = self.ours(way, MESSAGES // 10), self.ours(way, MESSAGES)
            rates.append(MESSAGES / many.seconds)
            grown.append(many.megabytes - few.megabytes)
        ours, bare = statistics.median(rates), statistics.median(floors)
        return measured_in(
            ROUNDS,
            MESSAGES,
            [
                row(f"retry {way}, one worker", ours, "/s", floor=bare, target=0.5),
                row(f"retry {way}, memory over that of a tenth", max(grown), "MB", floor=None, target=10),
            ],
        )

    def floor(self) -> float:
        """Seconds per message."""
        self.empty()
        return sum(1 / floor.run(self._program, self.dsn, what, 1, MESSAGES) for what in ("batch", "receive_batch"))

    def ours(self, way: str, messages: int) -> Ran:
        self.empty()
        self.session.run("truncate messages.message_archive, messages.archive_event, messages.operation_item")
        self.session.run(f"{_DEAD}{_TEXTS}) made", {"messages": messages})
        self.session.run("vacuum analyze messages.message_archive")
        command = [sys.executable, "-m", "bench.retry_side", way]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, megabytes = map(float, said.split())
        there = self.session.value('select count(distinct headers) from "Parcels"')
        if there != messages:
            raise SystemExit(f"{there:,} of {messages:,} are there, each once")
        return Ran(seconds, megabytes)

    def empty(self) -> None:
        self.session.run('truncate "Parcels", "Floor", "Onward" restart identity')
        self.session.run("checkpoint")


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql", conf={"max_wal_size": "4GB"})
        server.start()
        os.environ.update(
            PGQUEUE_STATE_DIR=str(folder / "var"),
            SECRET_KEY=secrets.token_hex(32),
            DJANGO_SETTINGS_MODULE="pgqueue_admin.config.settings",
        )
        try:
            measure_parts("retry", Bench(server, floor.build(folder)).parts())
        finally:
            server.stop()


if __name__ == "__main__":
    main()
