"""Failures, a group, the archive and its searches over ten million messages in three thousand groups.

Pages are requested over HTTP, one after another: server time counts, browser rendering does not. The floor is a page
that does nothing. CPU time of web server and database per page is given too, which is more reliable under other load:
bench/results/failures.json records the load. Each field is searched for a value of the few oldest messages or of
none, which costs most; a page's statement may take as long as the target. ``ROWS``, ``GROUPS``, ``FIELD_ROWS`` and
``ROUNDS`` in the environment make it smaller, ``PARTS`` selects some of its parts; ``make bench-failures``.
"""

import http.client
import os
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from bench import dead_archive
from bench.console import get, p95, prepare, process, wait_until
from bench.folder import temporary
from bench.parts import Part
from bench.parts import measure as measure_parts
from bench.table import Row, measured_in, row
from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import Node, Span, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.connect_options import LOOK_SECONDS
from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.osproc.process_tree import seconds_of

ROWS = int(os.environ.get("ROWS", 10_000_000))
GROUPS = int(os.environ.get("GROUPS", 3_000))
FIELD_ROWS = int(os.environ.get("FIELD_ROWS", 1_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 60))
LOOKS = 5
PAGE = 50
GROUP = f"{7:016x}"
CONF = {"max_wal_size": "4GB", "shared_buffers": "1GB"}
PAGES = {
    "Failures": "/failures/",
    "a group": f"/failures/{GROUP}/",
    "Failures, the next groups": "/failures/?after=50",
    "Failures by type": "/failures/?by=type",
    "Failures by queue": "/failures/?by=queue",
    "Failures by endpoint": "/failures/?by=endpoint",
    "Failures of a queue": "/failures/?q=queue:Q10",
    "Archive, dead ones": "/archive/",
    "Archive, all": "/archive/?q=",
    "Archive, dead ones of a queue": "/archive/?q=state:dead+queue:Q10",
    "Archive with facets": "/archive/?facets=open",
}
TEXTS = {
    "search in text, nothing has it": "/archive/?q=state:dead+nobody",
    "search in text, all have it": "/archive/?q=state:dead+OrderId",
}
FIELDS: dict[str, list[Node]] = {
    "state": [Term("state", "discarded", "is")],
    "queue": [Term("queue", '"public"."Q7"', "is")],
    "error:=": [Term("error", "Bench.RareError", "is")],
    "error": [Term("error", "RareError")],
    "type:=": [Term("type", "Bench.Rare", "is")],
    "type": [Term("type", "Rare")],
    "type*": [Term("type", "Bench.R", "starts")],
    "endpoint": [Term("endpoint", "rare-endpoint", "is")],
    "host": [Term("host", "rare-host", "is")],
    "id": [Term("id", "m-4711", "is")],
    "id*": [Term("id", "m-47119", "starts")],
    "fp": [Term("fp", GROUP, "is")],
    "died": [Span("died", "", 3600.0, None)],
    "sent": [Span("sent", "", "2027-01-01T00:00:00+00:00", None)],
    "attempts": [Span("attempts", "", 50, None)],
    "size": [Span("size", "", 100_000, None)],
    "result": [Term("result", "lock_expired", "is")],
}


class Bench:
    def __init__(self, stack: ExitStack, server: PostgreSQL, port: int):
        self._stack, self._server, self._port = stack, server, port
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database bench")
        self.dsn = server.dsn("bench")
        os.environ["DATABASE_URL"] = self.dsn
        self._cookie = prepare()
        self._rows = 0

    def parts(self) -> dict[str, Part]:
        return {"fields": self.fields, "pages": self.pages}

    def fields(self) -> list[Row]:
        """The slowest search for a value of the few oldest messages or of none: every state, newest first."""
        self.fill(FIELD_ROWS)
        looking = {"read_only": True, "statement_timeout": 60.0}
        with postgresql().connect(self.dsn, **looking) as session:  # type: ignore[arg-type]
            rows = [self._field(session, name, nodes) for name, nodes in FIELDS.items()]
        return measured_in(LOOKS, FIELD_ROWS, rows)

    def _field(self, session: Connection, name: str, nodes: list[Node]) -> Row:
        asked = ArchiveFilter(state="", also=tuple(nodes))
        took = longest(partial(store.page, session, asked, limit=PAGE))
        return row(f"archive, field {name}, what few have, slowest", took, "s", floor=None, target=LOOK_SECONDS)

    def pages(self) -> list[Row]:
        self.fill(ROWS)
        web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(self._port), "--no-access-log")
        settings = "pgqueue_admin.config.web_settings"
        serving = self._stack.enter_context(process(*web, DJANGO_SETTINGS_MODULE=settings))
        wait_until(lambda: ports.answers(self._port, "127.0.0.1"))
        pids = [serving.pid, self._server.pid or 0]
        taken, used = self._asked({**PAGES, "floor": "/healthz"}, ROUNDS, pids)
        floor = p95(taken.pop("floor"))
        rows = [row(f"{name}, p95", p95(each), "ms", floor=floor, target=50) for name, each in taken.items()]
        rows += [row(f"{name}, processor time", used[name], "ms", floor=used["floor"], target=50) for name in PAGES]
        texts, _ = self._asked(TEXTS, LOOKS, pids)
        rows += [
            row(f"{name}, first window", max(each), "ms", floor=floor, target=2000) for name, each in texts.items()
        ]
        return measured_in(ROUNDS, ROWS, rows)

    def _asked(
        self, pages: dict[str, str], rounds: int, pids: list[int]
    ) -> tuple[dict[str, list[float]], dict[str, float]]:
        """Request the pages interleaved; the first rounds warm up. Return times of each, and CPU time of one, in ms."""
        client = http.client.HTTPConnection("127.0.0.1", self._port)
        taken: dict[str, list[float]] = {name: [] for name in pages}
        used = dict.fromkeys(pages, 0.0)
        for number in range(rounds + 2):
            for name, path in pages.items():
                before = sum(map(seconds_of, pids))
                spent = get(client, path, self._cookie)
                if number >= 2:
                    taken[name].append(spent)
                    used[name] += 1000 * (sum(map(seconds_of, pids)) - before) / rounds
        return taken, used

    def fill(self, rows: int) -> None:
        if self._rows == rows:
            return
        with postgresql().connect(self.dsn, for_handlers=True) as session:
            session.run("truncate messages.message_archive")
            began = time.monotonic()
            dead_archive.fill(session, rows, GROUPS)
            print(f"{rows:,} rows in {time.monotonic() - began:.0f} s; MB of each index:")
            for name, megabytes in sorted(dead_archive.sizes(session).items()):
                print(f"    {name:40} {megabytes:8.0f}")
        self._rows = rows


def longest(look: Callable[[], object]) -> float:
    """The longest time in seconds; on a timeout, the time until then."""
    taken = []
    for _ in range(LOOKS):
        began = time.monotonic()
        try:
            look()
        except DatabaseError as error:
            print(error)
            return time.monotonic() - began
        taken.append(time.monotonic() - began)
    return max(taken)


def main() -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary())
        server = PostgreSQL(folder / "postgresql", conf=CONF)
        server.start()
        stack.callback(server.stop)
        port = ports.free()
        os.environ.update(
            PGQUEUE_STATE_DIR=str(folder / "var"),
            PORT=str(port),
            SECRET_KEY=secrets.token_hex(32),
            DJANGO_SETTINGS_MODULE="pgqueue_admin.config.settings",
        )
        measure_parts("failures", Bench(stack, server, port).parts())


if __name__ == "__main__":
    main()
