"""The worker on a real server: one handles each message, without an open transaction, and ends it once (L3-L5, L11)."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import (
    LeasedMessage,
    LeaseHandlers,
    LeaseQueue,
    LeaseQueueMissing,
    LeaseSettings,
    LeaseWorker,
    Rejected,
)
from pgqueue_admin.lease.listener import Listener
from pgqueue_admin.transport.sessions import circuit_breaker
from pgqueue_admin.transport.settings import SettingsRefused
from tests.lease.tables import archived, waiting
from tests.lease.test_crashes import started
from tests.older_schema import set_back
from tests.relay import Relay
from tests.waiting import until, within

EXAMPLE = Path(__file__).parents[2] / "examples" / "lease" / "worker.py"
QUICK = LeaseSettings(lock_seconds=60, concurrency=2, retry_after=(), look_every=600)

MakeWorker = Callable[..., LeaseWorker]


@pytest.fixture
def handlers() -> LeaseHandlers:
    return LeaseHandlers()


@pytest.fixture
def make_worker(engine_database: str, handlers: LeaseHandlers) -> Iterator[MakeWorker]:
    """``make_worker(concurrency=4, …)``: returns a started worker."""
    made: list[LeaseWorker] = []

    def make(name: str = "thumbs", dsn: str = engine_database, **settings: Any) -> LeaseWorker:
        made.append(LeaseWorker(name, dsn, handlers, settings=replace(QUICK, **settings)))
        made[-1].start()
        return made[-1]

    yield make
    for worker in made:
        worker.stop(drain_seconds=0)


@pytest.fixture
def seen(handlers: LeaseHandlers) -> list[Any]:
    """The messages that only the general handler got."""
    seen: list[Any] = []

    @handlers.handle()
    def see(message: Any, lease: LeasedMessage) -> None:
        seen.append(message)

    return seen


LISTENING = """select count(*) from pg_stat_activity where datname = current_database()
    and application_name like 'pgqueue worker %%' and state = 'idle' and query ~* 'extract\\(epoch from available_at'"""


def outcomes(engine: Connection) -> list[Any]:
    return sorted(archived(engine, "message_id::int, result::text"))


def listens(engine: Connection) -> bool:
    """Whether a worker has finished its first look and waits."""
    looked = (
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and state = 'idle' and query ~* %(last)s"
    )
    return bool(engine.value(looked, {"last": "extract\\(epoch from available_at"}))


def claims(engine: Connection) -> int:
    return int(engine.value("select coalesce(sum(attempts), 0) from messages.message_archive where kind = 'lease'"))


def test_a_message_is_handled_at_once_when_it_commits(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    make_worker()
    until(lambda: listens(engine))
    message = queue.publish({"kind": "render"})
    within(1, lambda: seen == [{"kind": "render"}])
    until(lambda: outcomes(engine) == [(message, "success")])
    assert waiting(engine) == []


def test_the_example_runs_as_it_stands(engine: Connection, queue: LeaseQueue, engine_database: str) -> None:
    queue.publish_many([{"kind": "render", "asset": "kettle.png"}, {"kind": "render", "asset": "x", "width": "wide"}])
    bare = {"PYTHONPATH": str(EXAMPLE.parents[2])}
    command = [sys.executable, str(EXAMPLE), engine_database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=bare) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "rendered kettle.png\n"
            until(lambda: not waiting(engine))
        finally:
            process.terminate()
    assert sorted(archived(engine, "result::text, details")) == [
        ("rejected", "/width: data.width must be integer"),
        ("success", '{"bytes": 4096}'),
    ]


def test_a7_backlog_at_the_start(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    ids = queue.publish_many(range(50))
    make_worker()
    until(lambda: outcomes(engine) == [(message, "success") for message in ids])
    assert sorted(seen) == list(range(50))


def test_a6_a_burst_is_handled_whole_by_few_claims(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five messages in one transaction cost the original four; here one claim covers all notifications so far."""
    asked: list[int] = []
    claim = type(queue).claim

    def counting(self: Any, most: int = 1, *args: Any, **more: Any) -> Any:
        asked.append(most)
        return claim(self, most, *args, **more)

    monkeypatch.setattr("pgqueue_admin.lease.queue.Leases.claim", counting)
    make_worker(concurrency=8)
    until(lambda: listens(engine))
    asked.clear()
    ids = queue.publish_many(range(5))
    until(lambda: outcomes(engine) == [(message, "success") for message in ids])
    assert asked[0] == 8
    assert len(asked) <= 3  # a second and third if the notifications came in two parts


def test_a_rush_of_many_messages_costs_no_claim_without_a_message(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notifications of 2,000 rows come alone or together with answers: few claims find nothing, and wake-ups do not
    exceed claims.
    """
    got: list[int] = []
    claim = LeaseQueue.claim

    def counting(self: Any, *args: Any, **more: Any) -> Any:
        leases = claim(self, *args, **more)
        got.append(len(leases))
        return leases

    monkeypatch.setattr("pgqueue_admin.lease.queue.Leases.claim", counting)
    worker = make_worker(concurrency=8)
    until(lambda: listens(engine))
    got.clear()
    queue.publish_many(range(2_000))
    until(lambda: not waiting(engine))
    assert sorted(seen) == list(range(2_000))
    assert sum(got) == 2_000
    assert got.count(0) <= 20
    assert 1 <= worker.claim_figures.wake_ups <= worker.claim_figures.claims == len(got)


def test_a_notify_wakes_nobody_who_could_not_claim(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    """While all slots are busy, 100 commits are not 100 wake-ups: the next free slot claims again."""
    seen: list[Any] = []
    begun, done = threading.Semaphore(0), threading.Event()

    @handlers.handle()
    def slow(message: Any, lease: LeasedMessage) -> None:
        begun.release()
        done.wait(60)
        seen.append(message)

    worker = make_worker(concurrency=2)
    until(lambda: listens(engine))
    queue.publish_many(["first", "first"])
    assert begun.acquire(timeout=60)
    assert begun.acquire(timeout=60)
    before = worker.claim_figures
    for number in range(100):
        queue.publish(number)
    while_busy = worker.claim_figures
    assert while_busy.claims == before.claims
    assert while_busy.wake_ups <= before.wake_ups + 1, "of the first it knows that there is something"
    done.set()
    until(lambda: not waiting(engine))
    assert len(seen) == 102
    figures = worker.claim_figures
    assert 1 <= figures.wake_ups <= figures.claims


def test_a_paused_worker_is_not_woken_and_claims_what_came_when_it_goes_on(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    worker = make_worker()
    until(lambda: listens(engine))
    worker.pause()
    before = worker.claim_figures
    for number in range(20):
        queue.publish(number)
    assert worker.claim_figures.wake_ups <= before.wake_ups + 1, "one may come before it knows"
    worker.resume()
    until(lambda: not waiting(engine))
    assert sorted(seen) == list(range(20))


def test_the_ends_that_a_message_can_have(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    @handlers.handle("ok")
    def ok(message: Any, lease: LeasedMessage) -> Any:
        return {"bytes": 4096}

    @handlers.handle("reject")
    def reject(message: Any, lease: LeasedMessage) -> None:
        raise Rejected("no such asset")

    @handlers.handle("fail")
    def fail(message: Any, lease: LeasedMessage) -> None:
        raise ValueError("broken")

    @handlers.handle("exit")
    def leave(message: Any, lease: LeasedMessage) -> None:
        raise SystemExit(3)

    published = [["ok"], {"kind": "reject"}, {"kind": "fail"}, {"kind": "exit"}, {"kind": "unknown"}, 7, {"kind": []}]
    ids = queue.publish_many(published)
    make_worker()
    until(lambda: not waiting(engine))
    rows = archived(engine, "message_id::int, result::text, details, message_type, exception_type")
    assert sorted(rows) == [
        (ids[0], "success", '{"bytes": 4096}', "ok", None),
        (ids[1], "rejected", "no such asset", "reject", None),
        (ids[2], "failed", "ValueError: broken", "fail", "ValueError"),
        (ids[3], "failed", "SystemExit: 3", "exit", "SystemExit"),
        (ids[4], "rejected", "Nobody handles the kind 'unknown'.", "unknown", None),
        (ids[5], "rejected", "The message has no kind.", None, None),
        (ids[6], "rejected", "The message has no kind.", None, None),
    ]


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"kind": "render", "width": "800"}, "/width"),
        ({"kind": "render"}, "/"),
        ({"kind": "render", "width": 1, "sizes": [1, {"a/b": "x"}]}, "/sizes/1/a~1b"),
    ],
)
def test_message_that_fails_its_schema_is_rejected_with_the_path(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker, message: Any, path: str
) -> None:
    whole = {"type": "integer"}
    schema = {
        "required": ["width"],
        "properties": {
            "width": whole,
            "height": {**whole, "default": 600},
            "sizes": {"items": {"anyOf": [whole]}, "prefixItems": [], "additionalItems": whole},
        },
    }
    schema["properties"]["sizes"] = {"items": {"properties": {"a/b": whole}}}  # type: ignore[index]
    rendered = []

    @handlers.handle("render", schema=schema)
    def render(message: Any, lease: LeasedMessage) -> None:
        rendered.append(message)

    fits = {"kind": "render", "width": 800}
    queue.publish_many([message, fits])
    make_worker()
    until(lambda: not waiting(engine))
    (rejected, success) = sorted(archived(engine, "result::text, details"))
    assert rejected[0] == "rejected"
    assert rejected[1].startswith(f"{path}: ")
    assert success[0] == "success"
    assert rendered == [fits]  # no schema defaults added


def test_schemas_that_are_none_and_handlers_that_never_run_are_refused(handlers: LeaseHandlers) -> None:
    with pytest.raises(ValueError, match="not a JSON schema"):
        handlers.handle("a", schema={"type": "nonsense"})(lambda message, lease: None)
    with pytest.raises(ValueError, match="may not refer to"):
        handlers.handle("b", schema={"$ref": "http://127.0.0.1:1/schema.json"})(lambda message, lease: None)

    async def later(message: Any, lease: LeasedMessage) -> None: ...

    with pytest.raises(TypeError, match="async"):
        handlers.handle("c")(later)
    handlers.handle("d")(lambda message, lease: None)
    with pytest.raises(ValueError, match="handled by"):
        handlers.handle("d")(lambda message, lease: None)


HOSTILE = [
    "[" * 3000 + "]" * 3000,
    "1" * 5000,
    '{"kind": "render", "kind": "other"}',
    '{"": 1e400}',
    '"' + "x" * 5_000_000 + '"',
]


def test_hostile_payloads_cost_one_ending_each(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    @handlers.handle("render")
    def render(message: Any, lease: LeasedMessage) -> None: ...

    for text in HOSTILE:
        engine.run("insert into messages.message (message) values (%(text)s::jsonb)", {"text": text})
    last = queue.publish({"kind": "render"})
    make_worker()
    until(lambda: not waiting(engine))
    results = outcomes(engine)
    assert [row[1] for row in results] == ["rejected"] * len(HOSTILE) + ["success"]
    assert results[-1][0] == last


def test_no_transaction_is_open_while_a_handler_works(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    """Other sessions can lock the row, and no transaction holds back vacuum."""
    looked: list[Any] = []

    @handlers.handle()
    def look(message: Any, lease: LeasedMessage) -> None:
        idle = (
            "select bool_and(xact_start is null) from pg_stat_activity where application_name like 'pgqueue thumbs%%'"
        )
        until(lambda: engine.value(f"{idle} and datname = current_database()"), what="the claiming thread waits")
        looked.append(engine.value("select id from messages.message for update nowait"))

    message = queue.publish(1)
    make_worker()
    until(lambda: not waiting(engine))
    assert looked == [message]


def test_a_long_handler_keeps_its_lock(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    """Renewed at half of its length: after three lengths no other worker has the message, and nothing has expired."""
    done = threading.Event()
    handlers.handle()(lambda message, lease: done.wait(60) or None)
    queue.publish(1)
    make_worker(lock_seconds=1.0)
    lasts = "select lock_expires_at from messages.message where lock_expires_at is not null"
    first = until(lambda: engine.value(lasts))
    until(lambda: engine.value(lasts) > first + timedelta(seconds=2))
    assert queue.expire() == (0, 0)
    done.set()
    until(lambda: not waiting(engine))
    assert archived(engine, "result::text, attempts") == [("success", 1)]


@pytest.mark.parametrize("expired_first", [True, False], ids=["seen by the expiry", "seen by its handler"])
def test_a8_a_handler_that_outlives_its_lock_ends_as_lock_expired_once(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker, expired_first: bool
) -> None:
    done = threading.Event()
    handlers.handle()(lambda message, lease: done.wait(60) or None)
    message = queue.publish(1)
    worker = make_worker(lock_seconds=0.2, renewed_for=0)
    over = "select count(*) from messages.message where lock_expires_at < now() at time zone 'utc'"
    until(lambda: engine.value(over))
    if expired_first:
        assert queue.expire() == (1, 0)
    done.set()
    until(lambda: not worker.in_flight)
    assert outcomes(engine) == [(message, "lock_expired")]
    assert waiting(engine) == []


def test_failures_come_back_after_a_while_and_then_have_failed(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    attempts: list[int] = []

    @handlers.handle()
    def fail(message: Any, lease: LeasedMessage) -> None:
        attempts.append(lease.attempts)
        raise ValueError("broken")

    queue.publish(1)
    make_worker(retry_after=(0.0, 600.0))
    until(lambda: attempts == [1, 2])
    until(lambda: engine.value("select lock_expires_at is null from messages.message"))
    due = queue.outlook().claim_in
    assert due
    assert 500 < due <= 600
    engine.run("update messages.message set available_at = now()")
    queue.renotify()
    until(lambda: not waiting(engine))
    assert attempts == [1, 2, 3]
    assert archived(engine, "result::text, attempts, details") == [("failed", 3, "ValueError: broken")]


def test_delayed_release_is_handled_when_due_without_a_notify(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    queue.publish(1)
    queue.release(queue.claim()[0], timedelta(seconds=2))
    make_worker()
    until(lambda: listens(engine))
    assert seen == []
    until(lambda: seen == [1])


def test_l11_two_workers_each_message_once(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    for name in ("thumbs 1", "thumbs 2"):
        make_worker(name, concurrency=3)
    ids = queue.publish_many(range(300))
    until(lambda: not waiting(engine))
    assert outcomes(engine) == [(message, "success") for message in ids]
    assert sorted(seen) == list(range(300))
    assert claims(engine) == 300


def test_l11_two_processes_each_message_once(engine: Connection, queue: LeaseQueue, engine_database: str) -> None:
    """Both are notified of each message; each reports what it handles."""
    numbers = 200
    with ExitStack() as ending:
        workers = [started(engine_database, f"worker {n}", "works", 60.0, stdout=subprocess.PIPE) for n in range(2)]
        for worker in workers:
            ending.enter_context(worker)
            ending.callback(worker.kill)
        until(lambda: engine.value(LISTENING) == 2, what="both listen")
        ids = queue.publish_many({"n": 10 * n} for n in range(numbers))
        until(lambda: not waiting(engine))
        for worker in workers:
            worker.terminate()
        handled = [[int(line) for line in worker.communicate()[0].split()] for worker in workers]
    assert all(handled), "each has some"
    assert sorted(handled[0] + handled[1]) == ids
    rows = archived(engine, "message_id::int, result::text, attempts, handled_by")
    assert sorted(row[:3] for row in rows) == [(message, "success", 1) for message in ids]
    for number, mine in enumerate(handled):
        assert sorted(row[0] for row in rows if row[3] == f"worker {number}") == sorted(mine)


def test_cut_sessions_reopen_and_messages_sent_meanwhile_are_handled(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    make_worker()
    until(lambda: listens(engine))
    ended = "select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'pgqueue thumbs'"
    engine.run(f"{ended} and datname = current_database()")
    queue.publish(1)
    until(lambda: seen == [1])
    until(lambda: not waiting(engine))


def test_an_ending_waits_for_a_database_that_is_away_and_is_done_once(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker, engine_database: str
) -> None:
    """A real socket is cut during a handler: its work is not done again."""
    handled: list[Any] = []
    relay = Relay(engine_database)
    try:

        @handlers.handle()
        def cut(message: Any, lease: LeasedMessage) -> None:
            handled.append(message)
            relay.replace()

        message = queue.publish(1)
        make_worker(dsn=relay.dsn)
        until(lambda: outcomes(engine) == [(message, "success")])
        assert handled == [1]
    finally:
        relay.end()


def test_stop_finishes_what_is_in_hand(
    engine: Connection, queue: LeaseQueue, handlers: LeaseHandlers, make_worker: MakeWorker
) -> None:
    begun, done = threading.Event(), threading.Event()
    errors: list[str] = []

    @handlers.handle()
    def slow(message: Any, lease: LeasedMessage) -> None:
        begun.set()
        done.wait(60)
        try:
            worker.stop()
        except RuntimeError as error:
            errors.append(str(error))

    queue.publish_many([1, 2])
    worker = make_worker(concurrency=1)
    assert begun.wait(60)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    done.set()
    stopping.join(60)
    assert [row[1] for row in archived(engine)] == ["success"]
    assert len(waiting(engine)) == 1
    assert errors
    assert "call stop() in another thread" in errors[0]
    worker.start()
    until(lambda: not waiting(engine))
    with pytest.raises(RuntimeError, match="works already"):
        worker.start()


@pytest.mark.parametrize(("policy", "is_locked"), [("release", False), ("archive", True)])
def test_stop_leaves_what_is_not_done_in_time_as_its_policy_says(
    engine: Connection,
    queue: LeaseQueue,
    handlers: LeaseHandlers,
    make_worker: MakeWorker,
    policy: Any,
    is_locked: bool,
) -> None:
    begun, done = threading.Event(), threading.Event()

    @handlers.handle()
    def stuck(message: Any, lease: LeasedMessage) -> None:
        begun.set()
        done.wait(60)

    queue.publish(1)
    worker = make_worker(on_lock_expired=policy, retry_after=(1.0,))
    assert begun.wait(60)
    assert worker.stop(drain_seconds=0.1) is False
    assert engine.value("select lock_expires_at is not null from messages.message") is is_locked
    done.set()


def test_ctrl_c_while_it_starts_waits_until_it_has_started(
    engine_database: str, handlers: LeaseHandlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first message may be handled before all threads run; then stop() finds all of them."""
    begin = Listener.start

    def interrupted(listener: Listener) -> None:
        signal.raise_signal(signal.SIGINT)
        begin(listener)

    monkeypatch.setattr(Listener, "start", interrupted)
    handlers.handle()(print)
    LeaseWorker("Thumbs", engine_database, handlers, settings=QUICK).run()
    assert [each.name for each in threading.enumerate() if each.name.startswith("Thumbs claims")] == []


@pytest.mark.parametrize(
    "kind_of", ["type", lambda message: message["type"] if isinstance(message, dict) else "text"], ids=["field", "code"]
)
def test_message_kind_is_read_from_a_field_or_by_code(
    engine: Connection, queue: LeaseQueue, engine_database: str, kind_of: Any
) -> None:
    handlers, seen = LeaseHandlers(kind_of), list[Any]()
    for kind in ("render", "text"):
        handlers.handle(kind)(lambda message, lease, kind=kind: seen.append((kind, message)))  # type: ignore[misc]
    of_type, of_kind, plain = queue.publish_many([{"type": "render", "kind": "mail"}, {"kind": "render"}, "plain"])
    worker = LeaseWorker("thumbs", engine_database, handlers, settings=QUICK)
    worker.start()
    try:
        until(lambda: not waiting(engine))
    finally:
        worker.stop()
    by_code = callable(kind_of)
    assert ("render", {"type": "render", "kind": "mail"}) in seen
    assert (("text", "plain") in seen) == by_code
    rows = sorted(archived(engine, "message_id::int, result::text, message_type, details"))
    assert rows[0] == (of_type, "success", "render", None)
    ends = [(of_kind, "rejected", None, "The message has no kind."), (plain, "rejected", None, rows[2][3])]
    ends_by_code = [(of_kind, "failed", None, "KeyError: 'type'"), (plain, "success", "text", None)]
    assert rows[1:] == (ends_by_code if by_code else ends)


def test_breaker_opens_during_a_database_outage_and_closes_after(
    engine: Connection,
    queue: LeaseQueue,
    make_worker: MakeWorker,
    seen: list[Any],
    engine_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After half a second instead of thirty."""
    for name, seconds in (("SECONDS_TO_TRIGGER", 0.5), ("ARMED_SECONDS", 0.1), ("TRIGGERED_SECONDS", 0.1)):
        monkeypatch.setattr(circuit_breaker, name, seconds)
    relay = Relay(engine_database)
    try:
        worker = make_worker(dsn=relay.dsn)
        until(lambda: listens(engine))
        assert worker.breakers.troubles() == []
        relay.end()
        queue.publish(1)
        until(lambda: [each.triggered for each in worker.breakers.troubles()] == [True], what="it opens")
        (trouble,) = worker.breakers.troubles()
        assert (trouble.what, seen) == ("Claiming lease messages", [])
        relay.replace()
        until(lambda: seen == [1])
        until(lambda: worker.breakers.troubles() == [], what="it closes")
        until(lambda: not waiting(engine))
    finally:
        relay.end()


def test_pause_resume_and_settings_while_it_works(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    worker = make_worker()
    until(lambda: listens(engine))
    worker.pause()
    message = queue.publish(1)
    other = make_worker("other")
    until(lambda: seen == [1])
    other.stop()
    queue.publish(2)
    worker.apply(replace(worker.settings, archive_success=False, concurrency=1))
    worker.resume()
    until(lambda: seen == [1, 2])
    until(lambda: not waiting(engine))
    assert outcomes(engine) == [(message, "success")]
    with pytest.raises(SettingsRefused) as refused:
        LeaseSettings(lock_seconds=0, concurrency=0, on_lock_expired="x", look_every=0, retry_after=(-1,)).checked()  # type: ignore[arg-type]
    assert len(refused.value.faults) == 5


def test_a_database_that_is_down_at_the_start_is_waited_for(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any], engine_database: str
) -> None:
    relay = Relay(engine_database)
    relay.end()
    try:
        make_worker(dsn=relay.dsn)
        queue.publish(1)
        relay.replace()
        until(lambda: seen == [1])
        until(lambda: not waiting(engine))
    finally:
        relay.end()


@pytest.mark.parametrize("version", [None, 3])
def test_without_its_tables_it_says_what_to_run(
    handlers: LeaseHandlers, engine: Connection, engine_database: str, database: str, version: int | None
) -> None:
    if version:
        set_back(engine, version)
    worker = LeaseWorker("thumbs", engine_database if version else database, handlers)
    with pytest.raises(LeaseQueueMissing, match=r"run manage\.py engine_schema"):
        worker.start()
    worker.stop()


def test_a_worker_looks_after_expired_locks_of_everybody(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, seen: list[Any]
) -> None:
    """Even if no other process does: at its start, and each look_every."""
    queue.publish_many([1, 2])
    queue.claim(1, 0.001)
    make_worker(look_every=0.1)
    until(lambda: len(outcomes(engine)) == 2)
    assert sorted(row[1] for row in outcomes(engine)) == ["lock_expired", "success"]
