"""The lease queue's cost over bare libpq: claim and finish, in batches, and the delay until a burst is handled.

The floor uses the product's own statements (lease_floor.c). ``ROUNDS``, ``MESSAGES`` and ``ARCHIVED`` make it
shorter, and ``PARTS`` selects some of ``parts``; ``make bench-lease``.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import floor
from bench.folder import temporary
from bench.parts import Part, measure
from bench.table import Row, measured_in, row
from pgqueue_admin.archive import schema, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROUNDS = int(os.environ.get("ROUNDS", 5))
MESSAGES = int(os.environ.get("MESSAGES", 10_000))
ARCHIVED = int(os.environ.get("ARCHIVED", 10_000_000))
LOOKS = 100
CAP = 10_000
BURST = 10_000
THREADS = 8
FLOOR = Path(__file__).with_name("lease_floor.c")
_FILL = """insert into messages.message (message)
    select jsonb_build_object('kind', 'render', 'n', n) from generate_series(1, %s) n"""
_FILL_ARCHIVE = """insert into messages.message_archive (
        created_at, message, result, handled_by, kind, queue, message_id, message_type, attempts, sent_at, died_at)
    select now() at time zone 'utc', jsonb_build_object('kind', 'render', 'n', n),
        case when n %% 10 = 0 then 'failed' else 'success' end::public.message_status, 'thumbs', 'lease',
        '"messages"."message"', n::text, 'render' || n %% 5, 1, now(), now() - (%(rows)s - n) * interval '10 ms'
    from generate_series(1, %(rows)s) n"""
DEAD = ArchiveFilter(kind="lease", queue='"messages"."message"')
ASKED = {
    "list": replace(DEAD, state=""),
    "filter, dead ones": DEAD,
    "filter, dead ones of a kind": replace(DEAD, type_is="render3"),
}


class Bench:
    def __init__(self, server: PostgreSQL, program: Path):
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database bench")
        self.dsn, self.program = server.dsn("bench"), program
        self.connection = postgresql().connect(self.dsn, for_handlers=True)
        schema.install(self.connection)

    def parts(self) -> dict[str, Part]:
        return {
            "single": lambda: [self.against("claim and finish, one at a time, 8 threads", 1, THREADS, 0.6)],
            "batches": lambda: [self.against("claim and finish in batches of 100", 100, 1, 0.7, 5 * MESSAGES)],
            "worker": lambda: [
                self.against("worker, 8 at once, handler does nothing", 1, THREADS, 0, side="worker"),  # no target
                self.burst(),
                self.waking(),
            ],
            "archive": self.archive,
        }

    def archive(self) -> list[Row]:
        """p95 of the queries of an archive page."""
        self.connection.run("truncate messages.message, messages.message_archive")
        self.connection.run("alter table messages.message_archive disable trigger user")
        self.connection.run(_FILL_ARCHIVE, {"rows": ARCHIVED})
        self.connection.run("alter table messages.message_archive enable trigger user")
        self.connection.run("vacuum analyze messages.message_archive")
        looks: dict[str, Callable[[], object]] = {
            name: partial(store.page, self.connection, asked, limit=51) for name, asked in ASKED.items()
        }
        looks["capped count"] = partial(store.count, self.connection, DEAD, CAP)
        rows = [row(f"archive: {name}, p95", p95(look), "ms", floor=None, target=50) for name, look in looks.items()]
        return measured_in(LOOKS, ARCHIVED, rows)

    def fill(self, messages: int) -> None:
        self.connection.run("truncate messages.message, messages.message_archive")
        self.connection.run(_FILL, [messages])
        self.connection.run("vacuum analyze messages.message")

    def against(
        self, name: str, size: int, threads: int, target: float, messages: int = MESSAGES, side: str = "client"
    ) -> Row:
        ours, floors = [], []
        for _ in range(ROUNDS):
            self.fill(messages)
            ours.append(self.side(side, threads, messages, size))
            self.fill(messages)
            floors.append(self.floor(threads, messages, size))
        return row(name, statistics.median(ours), "/s", floor=statistics.median(floors), target=target)

    def burst(self) -> Row:
        waits = []
        for _ in range(ROUNDS):
            self.fill(0)
            waits.append(self.side("burst", THREADS, BURST, 1))
        return row(
            f"burst of {BURST:,}, commit to first handler", statistics.median(waits), "ms", floor=None, target=10
        )

    def waking(self) -> Row:
        ratios = []
        for _ in range(ROUNDS):
            self.fill(0)
            ratios.append(self.side("waking", THREADS, BURST, 1))
        return row(f"burst of {BURST:,}, claims a wake-up", min(ratios), "claims", floor=1, target=1)

    def side(self, what: str, threads: int, messages: int, size: int) -> float:
        asked = [sys.executable, "-m", "bench.lease_side", self.dsn, what, str(threads), str(messages), str(size)]
        return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)

    def floor(self, threads: int, messages: int, size: int) -> float:
        asked = [str(self.program), self.dsn, str(threads), str(messages), str(size)]
        environment = os.environ | statements(size)
        return float(subprocess.run(asked, check=True, capture_output=True, text=True, env=environment).stdout)


def p95(look: Callable[[], object]) -> float:
    waits = []
    for _ in range(LOOKS):
        started = time.monotonic()
        look()
        waits.append(1000 * (time.monotonic() - started))
    return statistics.quantiles(waits, n=20)[-1]


def statements(size: int) -> dict[str, str]:
    """The product's statements, with the values of a claim filled in."""
    sql = postgresql().lease
    held = {"is_held": sql.is_held, "is_over": sql.is_over}
    claim, names = sql.claim(until=sql.until, noted=sql.with_holder, most=size, **held).numbered
    text = claim.decode()
    for place, name in reversed(list(enumerate(names, 1))):
        text = text.replace(f"${place}", {"seconds": "60", "releases": "0", "holder": "'floor, bench, pid 4711'"}[name])
    finish, order = sql.finish(**held).numbered
    known = {
        "ids": "@ids",
        "tokens": "@tokens",
        "results": "@results",
        "handled_by": "floor",
        "machine": "bench",
        "queue": '"messages"."message"',
        "archive_success": "t",
    }
    return {
        "CLAIM": text,
        "FINISH": finish.decode(),
        "FINISH_VALUES": "\n".join(known.get(name, "@nulls") for name in order),
    }


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql")
        server.start()
        try:
            measure("lease", Bench(server, floor.build(folder, FLOOR)).parts())
        finally:
            server.stop()


if __name__ == "__main__":
    main()
