"""Readers under pressure, in phases of one run: warm-up, clean, stress, recovery; lease and transport queues alternate.

Stress is a transaction that holds its transaction id, and then four overlapping repeatable-read scanners: both keep
vacuum from removing the readers' dead rows. An unrelated table is read and written meanwhile. ``SECONDS`` of a phase,
``READERS`` and ``MESSAGES`` in the environment make it shorter; ``make bench-pressure``.
"""

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from bench import children
from bench.folder import temporary
from bench.parts import Part, measure
from bench.table import Row, measured_in, row
from pgqueue_admin.archive import schema
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.transport import Endpoint

SECONDS = float(os.environ.get("SECONDS", 30))
READERS = [int(each) for each in os.environ.get("READERS", "16,256").split(",")]
MESSAGES = int(os.environ.get("MESSAGES", 20_000))  # constant number of waiting messages
PROCESSES = 4  # of readers: threads of one Python process share a processor
SCANNERS = 4
EVERY = 0.02  # seconds between two statements on the unrelated table
TABLES = {"lease": "messages.message", "transport": 'public."Engine"'}
_FILL = """insert into messages.message (message)
    select jsonb_build_object('kind', 'render', 'n', n) from generate_series(1, %s) n"""


@dataclass
class Phase:
    """``rate``: messages a second of all readers; ``waits``: of statements on the unrelated table, in milliseconds."""

    rate: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.waits, n=20)[-1] if len(self.waits) > 1 else 0.0


class Bench:
    def __init__(self, server: PostgreSQL):
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database bench")
        self.dsn = server.dsn("bench")
        self.connection = postgresql().connect(self.dsn, for_handlers=True)
        schema.install(self.connection)
        self.connection.run("create table public.unrelated (id integer primary key, n integer not null)")
        self.connection.run("insert into public.unrelated select n, 0 from generate_series(1, 10000) n")

    def parts(self) -> dict[str, Part]:
        return {kind: partial(self.measured, kind) for kind in TABLES}

    def measured(self, kind: str) -> list[Row]:
        return measured_in(1, MESSAGES, self.of(kind))

    def of(self, kind: str) -> list[Row]:
        runs = {readers: self.run(kind, readers) for readers in READERS}
        few, many = runs[READERS[0]]["clean"], runs[READERS[-1]]["clean"]
        declines = row(
            f"{kind}: {READERS[-1]} readers against {READERS[0]}", many.rate, "/s", floor=few.rate, target=1.0
        )
        return [declines, *(each for readers, phases in runs.items() for each in _rows(kind, readers, phases))]

    def run(self, kind: str, readers: int) -> dict[str, Phase]:
        self.fill(kind)
        with ExitStack() as stack:
            shares = [readers // PROCESSES + (number < readers % PROCESSES) for number in range(PROCESSES)]
            sides = [
                stack.enter_context(children.side(self.dsn, kind, str(share), module="bench.pressure_side"))
                for share in shares
                if share
            ]
            self.phase(sides)  # warm-up: sessions, plans, the first vacuum
            phases = {"clean": self.phase(sides)}
            with self.held_transaction():
                phases["a held transaction with an xid"] = self.phase(sides)
            self.vacuum(kind)
            with self.scanners(kind):
                phases[f"{SCANNERS} overlapping repeatable-read scanners"] = self.phase(sides)
            self.vacuum(kind)
            return {**phases, "recovery": self.phase(sides)}

    def fill(self, kind: str) -> None:
        self.connection.run("truncate messages.message, messages.message_archive")
        if kind == "lease":
            self.connection.run(_FILL, [MESSAGES])
        else:
            engine = Endpoint("Engine", self.dsn)
            engine.create_queues()
            self.connection.run('truncate public."Engine"')
            engine.send_many("Engine", ({"n": number} for number in range(MESSAGES)), type="Shop.Ping")
            engine.stop()
        self.vacuum(kind)

    def vacuum(self, kind: str) -> None:
        self.connection.run(f"vacuum analyze {TABLES[kind]}")

    def phase(self, sides: list[children.Child]) -> Phase:
        done, stopping = Phase(), threading.Event()
        beside = threading.Thread(target=self.beside, args=(done.waits, stopping))
        before, started = _handled(sides), time.monotonic()
        beside.start()
        time.sleep(SECONDS)
        after, took = _handled(sides), time.monotonic() - started
        stopping.set()
        beside.join()
        done.rate = (after - before) / took
        return done

    def beside(self, waits: list[float], stopping: threading.Event) -> None:
        """An unrelated workload: an update by key, committed."""
        with postgresql().connect(self.dsn, for_handlers=True) as session:
            while not stopping.wait(EVERY):
                started = time.monotonic()
                session.run("update public.unrelated set n = n + 1 where id = %s", [1 + len(waits) % 10_000])
                waits.append(1000 * (time.monotonic() - started))

    @contextmanager
    def held_transaction(self) -> Iterator[None]:
        with postgresql().connect(self.dsn, for_handlers=True) as holder, holder.transaction():
            holder.value("select pg_current_xact_id()::text")
            yield

    @contextmanager
    def scanners(self, kind: str) -> Iterator[None]:
        """Each scanner starts while the previous one still has its snapshot, so that some snapshot is always old."""
        stopping = threading.Event()
        threads = [
            threading.Thread(target=self.scan, args=(kind, number, stopping), daemon=True) for number in range(SCANNERS)
        ]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            stopping.set()
            for each in threads:
                each.join()

    def scan(self, kind: str, number: int, stopping: threading.Event) -> None:
        lasts = max(1.0, SECONDS / 3)
        stopping.wait(number * lasts / SCANNERS)
        with postgresql().connect(self.dsn, for_handlers=True) as session:
            while not stopping.is_set():
                session.run("begin isolation level repeatable read")
                session.value(f"select count(*) from {TABLES[kind]}")
                stopping.wait(lasts)
                session.run("commit")


def _handled(sides: list[children.Child]) -> float:
    for each in sides:
        children.ask(each)
    return sum(children.answer(each)[0] for each in sides)


def _rows(kind: str, readers: int, phases: dict[str, Phase]) -> Iterator[Row]:
    clean = phases["clean"]
    for name, phase in phases.items():
        if name == "clean":
            continue
        target = 0.0 if name == "recovery" else 0.8
        yield row(f"{kind}, {readers} readers: {name}", phase.rate, "/s", floor=clean.rate, target=target)
        if name != "recovery":
            slower = 100 * (phase.p95 / clean.p95 - 1) if clean.p95 else 0.0
            yield row(f"{kind}, {readers}, {name}: unrelated p95", slower, "%", floor=None, target=10)


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql", conf={"max_connections": 400})
        server.start()
        try:
            measure("pressure", Bench(server).parts())
        finally:
            server.stop()


if __name__ == "__main__":
    main()
