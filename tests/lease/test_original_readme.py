"""The README of oliverlambson/pgmq (at 8c2265a) tested step by step on our tables; tests are named by its words.

"worker" in it means the original's statements here; how a worker should behave is tested with ours.
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseHandlers, LeaseQueue, LeaseSettings, LeaseWorker
from tests.lease import original
from tests.lease.tables import archived, let_expire, waiting
from tests.waiting import gathered, until

Connect = Callable[..., Connection]
PUBLISH = """INSERT INTO messages.message (message) VALUES ('["{}"]'::JSONB);"""  # as in publish-message.sh
CLEAN = "DELETE FROM messages.message; DELETE FROM messages.message_archive;"  # as in clean-message-tables.sh


@pytest.fixture
def publisher(engine_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(engine_database, autocommit=True) as session:
        yield session


@pytest.fixture
def worker(engine_database: str) -> Iterator[psycopg.Connection[Any]]:
    """A session of the original's worker, in its database's time zone."""
    with psycopg.connect(engine_database, autocommit=True) as session:
        session.execute("set timezone = 'UTC'")
        yield session


def told(session: Connection, most: int, channel: str) -> list[str]:
    heard = gathered(lambda: session.notifications(timeout=1), lambda all_: len(all_) >= most)
    return [each.payload for each in heard if each.channel == channel]


def publish(session: psycopg.Connection[Any], instruction: str, engine: Connection) -> int:
    session.execute(PUBLISH.format(instruction))
    return int(engine.value("select max(id) from messages.message"))


def test_the_notify_includes_the_id_of_the_inserted_row(publisher: Any, engine: Connection) -> None:
    engine.listen("new_message")
    number = publish(publisher, "test", engine)
    assert told(engine, 1, "new_message") == [str(number)]


@pytest.mark.parametrize("result", ["success", "rejected", "failed", "lock_expired"])
def test_the_worker_deletes_the_message_and_writes_it_to_the_archive(
    publisher: Any, worker: Any, engine: Connection, result: str
) -> None:
    """The sequence diagram: UPDATE … RETURNING, process, DELETE, INSERT; ``dead_message`` unless it succeeded."""
    number = publish(publisher, "test", engine)
    engine.listen("dead_message")
    row = original.retrieve(worker, number)
    original.finish(worker, row, result, "said so")
    assert waiting(engine) == []
    assert archived(engine, "message, result::text, handled_by, details") == [(["test"], result, "worker", "said so")]
    if result == "success":
        publisher.execute("notify dead_message, 'nothing came before this'")
        assert told(engine, 1, "dead_message") == ["nothing came before this"]
    else:
        newest = engine.value("select id::text from messages.message_archive")
        assert told(engine, 1, "dead_message") == [newest]


def test_the_dead_message_carries_the_message_id_as_in_the_picture(
    publisher: Any, worker: Any, engine: Connection
) -> None:
    """With ``dead_payload="message"``, which follows the README's picture literally."""
    schema.install(engine, dead_payload="message")
    publish(publisher, "test", engine)
    number = publish(publisher, "test", engine)
    engine.listen("dead_message")
    original.finish(worker, original.retrieve(worker, number), "failed")
    assert told(engine, 1, "dead_message") == [str(number)]


def test_failed_to_lock_another_worker_is_processing_the_message(
    publisher: Any, worker: Any, engine: Connection, queue: LeaseQueue, engine_database: str
) -> None:
    number = publish(publisher, "test", engine)
    assert original.retrieve(worker, number)
    with psycopg.connect(engine_database, autocommit=True) as another:
        assert original.retrieve(another, number) is None
    assert queue.claim() == []


def test_no_workers_no_messages_are_lost_and_the_notify_is_sent_again(
    publisher: Any, engine: Connection, queue: LeaseQueue
) -> None:
    numbers = [publish(publisher, "test", engine) for _ in range(3)]
    engine.listen("new_message")
    for _ in range(2):
        queue.expire()
        queue.renotify()
        assert sorted(told(engine, 3, "new_message")) == sorted(map(str, numbers))
    assert waiting(engine) == numbers


def test_a_worker_that_goes_down_leaves_a_lock_that_expires(
    publisher: Any, worker: Any, engine: Connection, queue: LeaseQueue
) -> None:
    number = publish(publisher, "test", engine)
    assert original.retrieve(worker, number, 1)
    worker.close()
    let_expire(engine, number)
    assert queue.expire().archived == 1
    assert waiting(engine) == []
    assert archived(engine, "message_id, result::text") == [(str(number), "lock_expired")]


@pytest.fixture
def works(engine_database: str) -> Iterator[LeaseWorker]:
    """The example's instructions as handlers of ours: reject, fail, raise, timeout, any other."""
    handlers, settings = LeaseHandlers(), LeaseSettings(lock_seconds=0.5, renewed_for=0, retry_after=(), concurrency=4)

    @handlers.handle("fail", "raise")
    def fail(message: Any, lease: Any) -> None:
        raise ValueError("explicit fail instruction received")

    @handlers.handle("timeout")
    def outlive(message: Any, lease: Any) -> None:
        threading.Event().wait(1)

    @handlers.handle("test")
    def succeed(message: Any, lease: Any) -> str:
        return "fake work was done"

    worker = LeaseWorker("worker", engine_database, handlers, settings=settings)
    worker.start()
    yield worker
    worker.stop()


@pytest.mark.parametrize(
    ("instruction", "result"),
    [("reject", "rejected"), ("fail", "failed"), ("raise", "failed"), ("timeout", "lock_expired"), ("test", "success")],
)
def test_each_question_of_the_faq_ends_as_it_is_answered(
    publisher: Any, engine: Connection, works: LeaseWorker, instruction: str, result: str
) -> None:
    """Can't process: rejected. An error: failed. Still processing after the timeout: lock_expired, as it promises."""
    publish_at_once = PUBLISH.format(instruction)
    publisher.execute(publish_at_once)
    until(lambda: archived(engine, "result::text"))
    assert archived(engine, "message, result::text, handled_by") == [([instruction], result, "worker")]
    assert waiting(engine) == []


def test_a_warning_is_raised_on_every_dead_message(publisher: Any, worker: Any, engine: Connection) -> None:
    number = publish(publisher, "test", engine)
    said: list[str] = []
    worker.add_notice_handler(lambda notice: said.append(f"{notice.severity} {notice.message_primary}"))
    original.finish(worker, original.retrieve(worker, number), "failed")
    (warning,) = said
    assert warning.startswith("WARNING dead message: archive id ")
    assert f"result failed, message id {number}, queue" in warning


def test_listing_messages_whose_status_is_not_success(publisher: Any, worker: Any, engine: Connection) -> None:
    """How do we handle unsuccessful messages: the archive's rows, and the view that its to-do list asks for."""
    for result in ("success", "failed", "rejected"):
        original.finish(worker, original.retrieve(worker, publish(publisher, result, engine)), result)
    asked = "select message ->> 0 from messages.message_archive where result != 'success' order by id"
    assert [row[0] for row in engine.all(asked)] == ["failed", "rejected"]
    assert [row[0] for row in engine.all("select message ->> 0 from messages.message_dead order by id")] == [
        "failed",
        "rejected",
    ]


def test_no_transaction_is_open_while_the_work_is_done(engine: Connection, queue: LeaseQueue) -> None:
    """Why not SELECT … FOR UPDATE: in long-running transactions we'd be holding the lock for the entire duration."""
    queue.publish(1)
    (lease,) = queue.claim()
    open_ones = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        " and xact_start is not null and backend_type = 'client backend'"
    )
    assert engine.value(open_ones) == 0
    assert queue.finish(lease)


def test_a_scheduled_message_is_an_insert_and_nothing_special(publisher: Any, queue: LeaseQueue) -> None:
    publisher.execute("insert into messages.message (message) select '[\"scheduled\"]'")  # as pg_cron runs it
    (lease,) = queue.claim()
    assert json.loads(lease.text) == ["scheduled"]


def test_its_scripts_publish_look_and_clean(publisher: Any, engine: Connection) -> None:
    publish(publisher, "test", engine)
    assert publisher.execute("select * from messages.message;").fetchall()
    assert publisher.execute("select * from messages.message_archive;").fetchall() == []
    publisher.execute(CLEAN)
    assert waiting(engine) == []


def test_its_tables_are_adopted_with_their_rows(connection: Connection) -> None:
    from tests.archive.test_schema import ORIGINAL

    connection.run(ORIGINAL)
    connection.run("""insert into messages.message (message) values ('["waits"]')""")
    before = connection.all("select id, created_at, message, lock_expires_at from messages.message")
    assert schema.install(connection, adopt=True, warn=lambda said: None).did == "adopted"
    assert connection.all("select id, created_at, message, lock_expires_at from messages.message") == before
    assert connection.value("select count(*) from messages.message_archive") == 2
