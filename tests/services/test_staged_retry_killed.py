"""kill -9 of sender, receiver and server during a staged retry: each message is sent once."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.transport import Endpoint
from tests.own_server import own_server
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500))
PATIENCE = max(120, MESSAGES // 20)  # seconds
SENDERS, RECEIVERS = 2, 2
EVENTS = ["sender"] * 5 + ["receiver"] * 5 + ["server"] * 2
DEAD = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    failed_queue, target_schema, target_table, endpoint, died_at)
select now(), '{}', 'failed', 'chaos', 'transport', '"public"."Chaos"', concat('m-', n), 'Chaos.Work',
    concat('{"NServiceBus.MessageId":"m-', n, '","NServiceBus.EnclosedMessageTypes":"Chaos.Work",',
        '"NServiceBus.ContentType":"application\\/json","NServiceBus.ExceptionInfo.ExceptionType":"Chaos.Refused"}'),
    convert_to(concat('{"n":', n, '}'), 'UTF8'), 'Chaos.Refused', '"public"."Chaos"', 'public', 'Chaos', 'Chaos',
    now() - (%(messages)s - n) * interval '1 ms'
from generate_series(1, %(messages)s) n
"""
PREPARE = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("engine_schema", verbosity=0)
User.objects.create_superuser("ana")
"""
START = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.services.operations import lifecycle, selection
from pgqueue_admin.services.operations.plans import Planned
ana = User.objects.get()
frozen = selection.freeze("retry", ArchiveFilter(state="dead"), ana, "console", "all mended")
plan = Planned(try_first=5, watch_seconds=0, then_some=45, some_rate=50, rest_rate=float(sys.argv[1]), waits=False)
lifecycle.start(frozen.pk, ana, planned=plan)
"""
# A sender that loses the server connects again, as a housekeeping worker does.
SENDER = """
import time
import django
django.setup()
from django.db import Error, connections
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.housekeeping import resume_operations
while True:
    try:
        resume_operations.run_started()
        time.sleep(0.1)
    except (DatabaseError, Error):
        connections.close_all()
        time.sleep(0.1)
"""


class World:
    def __init__(self, server: PostgreSQL, folder: Path):
        self._server, self.dsn = server, server.dsn("shop")
        self._journal = folder / "handled"
        self._chance = random.Random(36)
        self._environment = {
            "DATABASE_URL": self.dsn, "PATH": os.environ["PATH"], "PGQUEUE_STATE_DIR": "/nonexistent/var",
            "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings",
        }  # fmt: skip
        self._processes: dict[str, list[subprocess.Popen[bytes]]] = {"sender": [], "receiver": []}

    def do(self, code: str, *arguments: str) -> None:
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=self._environment, cwd=ROOT)

    def begin(self) -> None:
        for kind, number in (("sender", SENDERS), ("receiver", RECEIVERS)):
            self._processes[kind] = [self._started(kind) for _ in range(number)]

    def end(self) -> None:
        for each in (*self._processes["sender"], *self._processes["receiver"]):
            each.kill()
            each.wait()

    def kill(self, what: str) -> None:
        if what == "server":
            os.kill(self._server.pid or 0, signal.SIGKILL)
            until(lambda: not self._server.running, what="the server is gone")
            self._server.start()
            return
        place = self._chance.randrange(len(self._processes[what]))
        victim = self._processes[what][place]
        victim.kill()
        victim.wait()
        self._processes[what][place] = self._started(what)

    def value(self, asked: str) -> Any:
        """None while the server is down."""
        with suppress(DatabaseError), session_of(self.dsn) as session:
            return session.value(asked)
        return None

    def _started(self, kind: str) -> subprocess.Popen[bytes]:
        if kind == "sender":
            code: tuple[str, ...] = ("-c", SENDER)
        else:
            code = ("-m", "bench.chaos_side", self.dsn, "sends_atomic_with_receive", "1", str(self._journal))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, *code], env=self._environment, cwd=ROOT, **quiet)  # type: ignore[call-overload]


@contextmanager
def session_of(dsn: str) -> Iterator[Connection]:
    with postgresql().connect(dsn, for_handlers=True) as session:
        yield session


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with own_server({}) as server:
        with session_of(server.dsn()) as admin:
            admin.run("create database shop")
        made = World(server, folder)
        made.do(PREPARE)
        for name in ("Chaos", "Effects"):
            Endpoint(name, made.dsn).create_queues()
        with session_of(made.dsn) as session:
            session.run(DEAD, {"messages": MESSAGES})
        made.do(START, str(max(100, MESSAGES // 8)))
        made.begin()
        try:
            yield made
        finally:
            made.end()


@pytest.mark.chaos
def test_kills_during_a_staged_retry_handle_each_message_once(tmp_path: Path) -> None:
    sent = "select count(*) from messages.operation_item where outcome = 'done'"
    events = random.Random(20_000).sample(EVENTS, len(EVENTS))
    with world(tmp_path) as made:
        for number, event in enumerate(events, 1):
            enough = number * MESSAGES // (len(events) + 1)
            until(lambda enough=enough: (made.value(sent) or 0) >= enough, PATIENCE, f"{enough} sent")  # type: ignore[misc]
            made.kill(event)
        until(lambda: made.value(sent) == MESSAGES, PATIENCE, "all sent")
        until(lambda: made.value('select count(*) from "Chaos"') == 0, PATIENCE, "all handled")
        until(lambda: made.value("select state from pgqueue_console.pgqueue_operation") == "following", PATIENCE)
        with session_of(made.dsn) as session:
            handled = Counter(row.body for row in session.all('select body from "Effects"'))
            retried = session.all("select archive_id from messages.archive_event where verb = 'retried'")
            items = session.one(
                "select count(distinct sent_as) as rows, count(*) filter (where outcome <> 'done') as others"
                " from messages.operation_item"
            )
            operation = session.one("select count, done, skipped, failed from pgqueue_console.pgqueue_operation")
            left = session.value("select count(*) from messages.message_dead")
    assert len(handled) == MESSAGES
    assert set(handled.values()) == {1}
    assert len(retried) == len({row.archive_id for row in retried}) == MESSAGES
    assert items == (MESSAGES, 0)
    assert operation == (MESSAGES, MESSAGES, 0, 0)
    assert left == 0
