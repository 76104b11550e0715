"""L1, L3 to L5: publish, claim, renew, finish and release, each in one statement (sheet A)."""

import ast
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue, MessageRefused, MessageUnreadable
from pgqueue_admin.lease.endings import MOST_DETAILS, ending
from tests.lease.tables import archived, let_expire, waiting

EXAMPLE = Path(__file__).parents[2] / "examples" / "lease" / "ten_lines.py"


def test_the_example_runs_as_it_stands(engine_database: str, engine: Connection) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, engine_database],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(EXAMPLE.parents[2])},
    )
    assert (done.stdout, done.stderr) == ("rendered kettle.png\nsuccess\n", "")
    assert archived(engine) == [("1", "success", "thumbs", '{"bytes": 4096}')]
    lines = {node.lineno for node in ast.walk(ast.parse(EXAMPLE.read_text())) if isinstance(node, ast.stmt)}
    assert len(lines) <= 10


def test_published_messages_are_notified_and_claimed_in_order(
    queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    listener = connect(engine_database)
    listener.listen("new_message")
    ids = queue.publish_many([{"n": 1}, ["x", 2], "text", 3, None, True, "\\u0000", "NaN"])
    assert [int(each.payload) for each in listener.notifications(timeout=5)] == ids
    leases = queue.claim(3, 30)
    assert [(lease.id, lease.message, lease.attempts) for lease in leases] == [
        (ids[0], {"n": 1}, 1),
        (ids[1], ["x", 2], 1),
        (ids[2], "text", 1),
    ]
    assert [lease.message for lease in queue.claim(100, 30)] == [3, None, True, "\\u0000", "NaN"]
    assert queue.claim(100, 30) == []


def test_the_lock_is_the_originals_column_in_utc(queue: LeaseQueue, engine: Connection) -> None:
    queue.publish(1)
    (lease,) = queue.claim(1, timedelta(minutes=5))
    left = engine.value("select lock_expires_at - (now() at time zone 'utc') from messages.message")
    assert timedelta(minutes=4, seconds=30) < left <= timedelta(minutes=5)
    assert engine.value("select lock_expires_at at time zone 'utc' from messages.message") == lease.expires_at


def test_finish_deletes_and_archives_with_all_that_is_known(queue: LeaseQueue, engine: Connection) -> None:
    message = queue.publish({"kind": "render"})
    (lease,) = queue.claim()
    try:
        raise ValueError("no\0 such \ud800 asset")
    except ValueError as error:
        (ended,) = queue.finish_many([ending(lease, "failed", kind="render", error=error)])
    assert (ended.id, ended.result) == (message, "failed")
    assert waiting(engine) == []
    (row,) = engine.all(
        "select id, message_id, kind, queue, state, handled_by, endpoint, attempts, message_type, exception_type,"
        " exception_message, details, stack_trace, created_at at time zone 'utc' as created_at, sent_at, machine"
        " from messages.message_archive"
    )
    assert row[:12] == (
        *(ended.archive_id, str(message), "lease", '"messages"."message"', "dead", "thumbs", "thumbs", 1),
        *("render", "ValueError", "no␀ such ? asset", "ValueError: no␀ such ? asset"),
    )
    assert "test_finish_deletes_and_archives" in row.stack_trace
    assert row.created_at == row.sent_at == lease.created_at
    assert row.machine


@pytest.mark.parametrize("result", ["success", "rejected", "failed", "lock_expired"])
def test_each_ending_is_archived_once_and_dead_ones_are_told(
    queue: LeaseQueue, engine: Connection, engine_database: str, connect: Callable[..., Connection], result: Any
) -> None:
    listener = connect(engine_database)
    listener.listen("dead_message")
    queue.publish(1)
    (lease,) = queue.claim()
    ended = queue.finish(lease, result, "said")
    assert ended
    assert queue.finish(lease, result, "said again") is None
    assert archived(engine) == [(str(lease.id), result, "thumbs", "said")]
    told = [] if result == "success" else [str(ended.archive_id)]
    engine.run("notify dead_message, 'end'")
    heard: list[str] = []
    while "end" not in heard:
        heard += [each.payload for each in listener.notifications(timeout=60)]
    assert heard == [*told, "end"]


def test_a_success_may_be_kept_out_of_the_archive(queue: LeaseQueue, engine: Connection) -> None:
    queue.publish_many([1, 2])
    first, second = queue.claim(2)
    ended = queue.finish(first, archive_success=False)
    assert ended
    assert ended.archive_id is None
    assert queue.finish(second, "failed", archive_success=False)
    assert [row[1] for row in archived(engine)] == ["failed"]


def test_details_are_cut_between_characters_at_8_kb(queue: LeaseQueue, engine: Connection) -> None:
    queue.publish_many([1, 2, 3])
    for lease, details in zip(
        queue.claim(3), ["€" * 5000, {"when": datetime(2026, 1, 1, tzinfo=UTC)}, object()], strict=True
    ):
        queue.finish(lease, details=details)
    first, second, third = (row[3] for row in archived(engine))
    assert first == "€" * (MOST_DETAILS // 3)
    assert second == '{"when": "2026-01-01 00:00:00+00:00"}'
    assert third.startswith('"<object object')


def test_a_release_comes_back_at_once_later_or_at_a_time(queue: LeaseQueue, engine: Connection) -> None:
    queue.publish_many([1, 2, 3])
    now, later, at_noon = queue.claim(3)
    assert queue.release(now)
    assert queue.release(later, timedelta(hours=1))
    assert queue.release(at_noon, datetime.now(UTC) + timedelta(minutes=30))
    assert not queue.release(now)
    assert [(lease.id, lease.attempts) for lease in queue.claim(3)] == [(now.id, 2)]
    due = queue.outlook().claim_in
    assert due
    assert 29 * 60 < due <= 30 * 60
    engine.run("update messages.message set available_at = now() where lock_expires_at is null")
    assert {lease.id for lease in queue.claim(3)} == {later.id, at_noon.id}
    assert queue.outlook().claim_in is None
    with pytest.raises(ValueError, match="without a zone"):
        queue.release(now, datetime(2030, 1, 1))  # noqa: DTZ001


def test_a_release_tells_those_who_listen(
    queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    message = queue.publish(1)
    listener = connect(engine_database)
    listener.listen("new_message")
    queue.release(queue.claim()[0])
    assert [each.payload for each in listener.notifications(timeout=60)] == [str(message)]


def test_renewed_locks_last_and_those_that_are_over_are_lost(queue: LeaseQueue, engine: Connection) -> None:
    queue.publish_many([1, 2])
    kept, over = queue.claim(2, 30)
    let_expire(engine, over.id)
    assert queue.renew_many([kept, over], 3600) == {kept.token}
    assert not queue.renew(over)
    assert engine.value(
        "select lock_expires_at > now() at time zone 'utc' + interval '59 minutes'"
        " and lock_expires_at = token_expires_at from messages.message where id = %(id)s",
        {"id": kept.id},
    )
    assert queue.finish(kept)


def test_concurrent_clients_claim_each_message_once(
    queue: LeaseQueue, engine_database: str, engine: Connection
) -> None:
    """L11: many clients at once, each message once."""
    ids = queue.publish_many(range(300))
    got: list[int] = []
    barrier = threading.Barrier(6)

    def take() -> None:
        barrier.wait()
        while leases := queue.claim(7):
            got.extend(lease.id for lease in leases)
            queue.finish_many([ending(lease, "success") for lease in leases])

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == ids
    assert sorted(int(row[0]) for row in archived(engine)) == ids


def test_publishing_commits_with_business_data(queue: LeaseQueue, engine: Connection, engine_database: str) -> None:
    engine.run("create table orders (id int)")
    with psycopg.connect(engine_database) as mine:
        mine.execute("insert into orders values (1)")
        queue.within(mine).publish({"order": 1})
        assert waiting(engine) == []
        mine.rollback()
        assert waiting(engine) == []
        mine.execute("insert into orders values (2)")
        message = queue.within(mine).publish({"order": 2})
    assert waiting(engine) == [message]
    with psycopg.connect(engine_database) as mine:
        within = queue.within(mine)
        (lease,) = within.claim()
        within.finish(lease)
        mine.rollback()
        assert not mine.closed
    assert waiting(engine) == [message]
    assert archived(engine) == []


@pytest.mark.parametrize(
    "message", [float("nan"), {"a": [float("inf")]}, "a\0b", {"\0": 1}, "\ud800", object(), {("a",): 1}, b"x"]
)
def test_message_that_jsonb_rejects_is_refused_before_the_insert(
    queue: LeaseQueue, engine_database: str, message: Any
) -> None:
    with psycopg.connect(engine_database) as mine:
        with pytest.raises(MessageRefused):
            queue.within(mine).publish_many([1, message])
        assert queue.within(mine).publish(r"a\u0000b")  # six letters


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, "1" * 5000, '{"a":' * 2000 + "1" + "}" * 2000])
def test_message_unreadable_in_python_fails_no_other(queue: LeaseQueue, engine: Connection, text: str) -> None:
    """Any client may write it: the database accepts it."""
    queue.publish(1)
    engine.run("insert into messages.message (message) values (%(text)s::jsonb)", {"text": text})
    queue.publish(2)
    first, hostile, last = queue.claim(3)
    assert (first.message, last.message) == (1, 2)
    with pytest.raises(MessageUnreadable):
        _ = hostile.message
    assert queue.finish(hostile, "rejected")


@pytest.mark.parametrize("lock_for", [0, -1, timedelta(0), timedelta(days=4000)])
def test_a_lock_that_is_none_is_refused(queue: LeaseQueue, lock_for: float | timedelta) -> None:
    with pytest.raises(ValueError, match="a lock of"):
        queue.claim(1, lock_for)
    with pytest.raises(ValueError, match="1 or more"):
        queue.claim(0)
