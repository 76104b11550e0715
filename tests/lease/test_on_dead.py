"""Handlers of dead messages get each at least once, whatever ended it and whichever process crashes (L8)."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.lease import DeadMessage, LeaseHandlers, LeaseQueue, LeaseQueueMissing, LeaseSettings, LeaseWorker
from tests.lease import original
from tests.lease.tables import let_expire, waiting
from tests.older_schema import set_back
from tests.waiting import until

WORKER = Path(__file__).with_name("dead_worker.py")
QUICK = LeaseSettings(lock_seconds=30, look_every=0.5, retry_after=(0.0, 0.0))

MakeWorker = Callable[..., LeaseWorker]


@pytest.fixture
def handlers() -> LeaseHandlers:
    return LeaseHandlers()


@pytest.fixture
def given(handlers: LeaseHandlers) -> list[DeadMessage]:
    given: list[DeadMessage] = []
    handlers.on_dead("render")(given.append)
    return given


@pytest.fixture
def make_worker(engine_database: str, handlers: LeaseHandlers) -> Iterator[MakeWorker]:
    made: list[LeaseWorker] = []

    def make(**options: Any) -> LeaseWorker:
        made.append(LeaseWorker("mourner", engine_database, handlers, **{"settings": QUICK, **options}))
        made[-1].start()
        return made[-1]

    yield make
    for worker in made:
        worker.stop(drain_seconds=0)


def asked(engine: Connection) -> None:
    """Register a consumer, as if a worker for dead messages had run before."""
    engine.run("insert into messages.dead_consumer default values on conflict do nothing")


def deliveries(engine: Connection) -> int:
    return int(engine.value("select count(*) from messages.dead_delivery"))


def died(queue: LeaseQueue, result: Any = "failed", **message: Any) -> int:
    """End a message as dead; return its archive id."""
    queue.publish({"kind": "render", **message})
    (lease,) = queue.claim()
    ended = queue.finish(lease, result, "why")
    assert ended
    assert ended.archive_id
    return ended.archive_id


def test_told_by_notify_with_all_that_the_archive_has(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    make_worker(settings=LeaseSettings(look_every=3600))
    until(lambda: engine.value("select exists (select from messages.dead_consumer)"), what="it has asked")
    first = died(queue, n=1)
    (dead,) = until(lambda: given)
    assert (dead.archive_id, dead.given, dead.result, dead.details) == (first, 1, "failed", "why")
    assert (dead.message, dead.handled_by, dead.attempts) == ({"kind": "render", "n": 1}, "thumbs", 1)
    assert (dead.message_id, dead.exception_type) == (
        str(engine.value("select max(message_id) from messages.message_archive")),
        None,
    )
    assert dead.created_at
    assert dead.archived_at
    until(lambda: deliveries(engine) == 0, what="it comes no more")


def test_dead_messages_are_delivered_however_they_ended(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage], engine_database: str
) -> None:
    """Even without a listener, through an original client or an expired lock. A success is not dead."""
    asked(engine)
    ids = [died(queue, result) for result in ("failed", "rejected", "lock_expired")]
    queue.publish({"kind": "render"})
    let_expire(engine, queue.claim()[0].id)
    queue.expire()
    queue.publish({"kind": "render"})
    queue.finish(queue.claim()[0])
    message = queue.publish({"kind": "render", "by": "original"})
    with psycopg.connect(engine_database, autocommit=True) as session:
        original.finish(session, original.retrieve(session, message), "failed")
    dead = [
        row.id for row in engine.all("select id from messages.message_archive where result <> 'success' order by id")
    ]
    assert set(ids) < set(dead)
    assert len(dead) == 5
    make_worker()
    until(lambda: deliveries(engine) == 0)
    assert sorted(each.archive_id for each in given) == dead
    assert {each.result for each in given} == {"failed", "rejected", "lock_expired"}


def test_worker_with_only_dead_handlers_claims_nothing(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    """It would reject messages that other workers have handlers for."""
    asked(engine)
    dead = died(queue)
    waits = queue.publish({"kind": "other"})
    make_worker()
    until(lambda: [each.archive_id for each in given] == [dead])
    assert waiting(engine) == [waits]
    assert engine.value("select count(*) from messages.message_archive") == 1


def test_dead_messages_are_delivered_from_the_first_handler_on(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    died(queue, n="before")
    assert deliveries(engine) == 0
    make_worker().stop()
    second = died(queue, n="while nobody runs")
    make_worker()
    until(lambda: [each.archive_id for each in given] == [second])


def test_retries_and_then_no_more(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, handlers: LeaseHandlers
) -> None:
    calls: list[int] = []

    @handlers.on_dead()
    def breaks(dead: DeadMessage) -> None:
        calls.append(dead.given)
        raise ValueError("broken")

    make_worker()
    archive_id = died(queue)
    until(lambda: deliveries(engine) == 0 and calls)
    assert calls == [1, 2, 3]
    assert engine.value("select state from messages.message_archive where id = %s", [archive_id]) == "dead"


def test_a_handler_that_ends_its_process_gets_it_no_more_often(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    """The attempt is counted before the call."""
    asked(engine)
    died(queue)
    engine.run("update messages.dead_delivery set given = 3")
    make_worker()
    until(lambda: deliveries(engine) == 0)
    assert given == []


def test_no_handler_of_its_kind_unreadable_or_gone(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    asked(engine)
    died(queue, kind="other")
    gone = died(queue)
    queue.publish([])
    engine.run("update messages.message set message = %s::jsonb", ["[" * 900 + "]" * 900])
    queue.finish(queue.claim()[0], "failed")
    engine.run("delete from messages.message_archive where id = %s", [gone])
    last = died(queue)
    make_worker()
    until(lambda: deliveries(engine) == 0)
    assert [each.archive_id for each in given] == [last]


def test_paused_it_waits(
    engine: Connection, queue: LeaseQueue, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    worker = make_worker()
    worker.pause()
    asked(engine)
    died(queue)
    assert deliveries(engine) == 1
    worker.resume()
    until(lambda: given)


def test_dead_handler_is_registered_once_and_is_not_async(handlers: LeaseHandlers, given: list[DeadMessage]) -> None:
    with pytest.raises(ValueError, match=r"'render' has .* already, when it is dead"):
        handlers.on_dead("render")(print)

    async def later(dead: DeadMessage) -> None: ...

    with pytest.raises(TypeError, match="is async"):
        handlers.on_dead()(later)


def test_on_tables_of_a_version_before_it_does_not_start(
    engine: Connection, make_worker: MakeWorker, given: list[DeadMessage]
) -> None:
    set_back(engine, 4)
    with pytest.raises(LeaseQueueMissing):
        make_worker()


def started(dsn: str, does: str, lock: float) -> "subprocess.Popen[str]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, str(WORKER), dsn, does, str(lock)]
    return subprocess.Popen(command, text=True, env={"PYTHONPATH": str(WORKER.parents[2])}, **pipes)  # type: ignore[call-overload]


@pytest.mark.chaos
def test_kill_9_while_a_handler_of_the_dead_works(engine: Connection, queue: LeaseQueue, engine_database: str) -> None:
    """The message is delivered again; others are handled meanwhile, and none that died without a worker is lost."""
    engine.run("create table public.told (archive_id int, given int)")
    asked(engine)
    first = died(queue)
    with started(engine_database, "holds", 2.0) as victim:
        try:
            assert victim.stdout
            assert victim.stdout.readline().strip() == str(first)
        finally:
            victim.kill()
    others = [died(queue, n=n) for n in range(20)]
    workers = [started(engine_database, "works", 2.0) for _ in range(2)]
    try:
        until(lambda: deliveries(engine) == 0)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    told = {row.archive_id: row.given for row in engine.all("select * from public.told")}
    assert told == {first: 2, **dict.fromkeys(others, 1)}
    assert engine.value("select count(*) from public.told") == 21, "two listen, one is given it"


def test_archiving_role_needs_and_lends_no_delivery_right(
    engine: Connection, queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    """The function writes for every role that may archive, and no other role can run it."""
    asked(engine)
    engine.run("create role original login password 'narrow'; create schema authorization original")
    try:
        engine.run(
            "grant usage on schema messages to original; grant select, insert on messages.message_archive to original;"
            "grant usage on all sequences in schema messages to original"
        )
        theirs = connect(re.sub("//.*@", "//original:narrow@", engine_database))
        theirs.run(
            "insert into messages.message_archive (created_at, message, result, handled_by)"
            " values (now(), '1', 'failed', 'worker')"
        )
        assert deliveries(engine) == 1
        theirs.run("create table original.bait (id int, result text)")
        for attempt in (
            "create trigger bait after insert on original.bait for each row execute function messages.deliver_dead()",
            "insert into messages.dead_delivery (archive_id) values (7)",
        ):
            with pytest.raises(NotPermitted):
                theirs.run(attempt)
    finally:
        engine.run("drop owned by original; drop role original")


def test_undeliverable_dead_message_is_archived(engine: Connection, queue: LeaseQueue) -> None:
    asked(engine)
    engine.run("alter table messages.dead_delivery add constraint never check (archive_id < 0)")
    archive_id = died(queue)
    assert engine.value("select result::text from messages.message_archive where id = %s", [archive_id]) == "failed"
    assert deliveries(engine) == 0
    engine.run("drop table messages.dead_delivery")
    assert died(queue)
