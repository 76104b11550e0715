"""A guarded transaction: a handler that ends it and begins another is detected, however it ends it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import AlreadyExists, TransactionEndedByHandler
from pgqueue_admin.dialects.postgresql import pq_executor
from pgqueue_admin.dialects.postgresql.session import Session
from tests.dialects.sales import QUEUE, SQL

PUT = "insert into guarded values (%s)"
RECEIVE = SQL.receive(table=QUEUE)
LOW = {"low": 0}


@pytest.fixture(params=["ours", "psycopg's"])
def guarded(request: pytest.FixtureRequest, queue: Connection, database: str) -> Iterator[Connection]:
    """Our own session and psycopg's, and a table to write into."""
    queue.run("create table guarded (id int primary key deferrable initially deferred)")
    if request.param == "ours":
        yield queue
        return
    with psycopg.connect(database, autocommit=True) as raw:
        yield Session(raw)


def written(connect: Callable[..., Connection], database: str) -> list[int]:
    return [row[0] for row in connect(database).all("select id from guarded order by id")]


@pytest.mark.parametrize("word", ["rollback", "commit"])
@pytest.mark.parametrize("begin", ["transaction", "transaction_with"])
def test_ended_and_begun_again(
    guarded: Connection, connect: Callable[..., Connection], database: str, word: str, begin: str
) -> None:
    """Writes in the other transaction are not committed."""
    block = guarded.transaction() if begin == "transaction" else guarded.transaction_with(RECEIVE, LOW)

    def ended() -> None:
        with block:
            guarded.place_guard()
            guarded.run(word)
            guarded.run("begin")
            guarded.run(PUT, [1])

    with pytest.raises(TransactionEndedByHandler):
        ended()
    assert written(connect, database) == []
    assert not guarded.in_transaction


def test_with_the_last_statements(queue: Connection, connect: Callable[..., Connection], database: str) -> None:
    """The last statements are sent with the commit and refused with it."""
    row = {"id": None, "ttbr_ms": None, "headers": "{}", "body": b""}

    def ended() -> None:
        with queue.transaction_with(RECEIVE, LOW):
            queue.place_guard()
            queue.run("rollback")
            queue.run("begin")
            queue.run_last([(SQL.send(table=QUEUE), row)])

    with pytest.raises(TransactionEndedByHandler):
        ended()
    assert connect(database).value('select count(*) from "Sales"') == 0
    with queue.transaction_with(RECEIVE, LOW):
        queue.place_guard()
        queue.run_last([(SQL.send(table=QUEUE), row)])
    assert connect(database).value('select count(*) from "Sales"') == 1


def test_transaction_that_was_not_ended_commits(
    guarded: Connection, connect: Callable[..., Connection], database: str
) -> None:
    """It is committed, with nested blocks too, and the next transaction is independent."""
    with guarded.transaction():
        guarded.place_guard()
        guarded.place_guard()
        with guarded.transaction():
            guarded.run(PUT, [1])
    with guarded.transaction():
        guarded.run("rollback")
        guarded.run("begin")
        guarded.run(PUT, [2])
    assert written(connect, database) == [1, 2]


def test_left_by_an_error(guarded: Connection, connect: Callable[..., Connection], database: str) -> None:
    def failing() -> None:
        with guarded.transaction():
            guarded.place_guard()
            guarded.run(PUT, [1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with guarded.transaction():
        guarded.run(PUT, [2])
    assert written(connect, database) == [2]


def test_a_commit_that_is_refused(guarded: Connection, connect: Callable[..., Connection], database: str) -> None:
    """A deferred constraint fails at the commit: the guard does not hide it."""

    def refused() -> None:
        with guarded.transaction():
            guarded.place_guard()
            guarded.run(PUT, [1])
            guarded.run(PUT, [1])

    with pytest.raises(AlreadyExists, match="duplicate key"):
        refused()
    assert written(connect, database) == []
    assert not guarded.in_transaction


def in_a_thread(work: Callable[[], object]) -> None:
    """As slots do: only in a thread does the next receive go with the commit."""
    with ThreadPoolExecutor() as thread:
        thread.submit(work).result()


def prepared(queue: Connection) -> None:
    for _ in range(2):
        with queue.transaction_with(RECEIVE, LOW):
            pass


@pytest.mark.parametrize("word", ["rollback", "commit"])
def test_with_the_next_receive(queue: Connection, connect: Callable[..., Connection], database: str, word: str) -> None:
    """It is sent after the commit, and does not begin if that is refused."""
    queue.run("create table guarded (id int primary key)")

    def ended() -> None:
        prepared(queue)
        with queue.transaction_with(RECEIVE, LOW):
            queue.place_guard()
            queue.run(word)
            queue.run("begin")
            queue.run(PUT, [1])
            queue.commit_and_begin_with(RECEIVE, LOW)

    with pytest.raises(TransactionEndedByHandler):
        in_a_thread(ended)
    assert written(connect, database) == []
    assert not queue.in_transaction


def test_the_next_receive_is_another_transaction(
    queue: Connection, connect: Callable[..., Connection], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not guarded, and a refusal there does not belong to the previous one."""
    monkeypatch.setattr(pq_executor, "_RECENTLY", 60.0)  # so that a slow machine does not count as a pause
    queue.run("create table guarded (id int primary key)")

    def work() -> None:
        prepared(queue)
        with queue.transaction_with(RECEIVE, LOW):
            queue.place_guard()
            queue.run(PUT, [1])
            behind = queue.commit_and_begin_with(RECEIVE, LOW)
        assert behind is not None
        with behind:
            queue.run("rollback")
            queue.run("begin")
            queue.run(PUT, [2])

    in_a_thread(work)
    assert written(connect, database) == [1, 2]


def test_rollback_by_the_owner_is_allowed(guarded: Connection) -> None:
    guarded.run("begin")
    guarded.rollback()
    assert not guarded.in_transaction
    guarded.rollback()
