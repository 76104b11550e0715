"""Statements of threads wait inside libpq: fewer context switches, same answers, errors and ends."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection, errors
from pgqueue_admin.dialects.postgresql import pq_executor
from tests.dialects.sales import QUEUE, ROW, SQL, Traced, bodies, row, send
from tests.waiting import until

LOW = {"low": 1}
Connect = Callable[..., Connection]
Elsewhere = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine would otherwise use two round trips, as after a pause."""
    monkeypatch.setattr(pq_executor, "_RECENTLY", 600.0)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """Run work in a thread; return its result or raise its error."""
    with ThreadPoolExecutor(1) as threads:
        yield lambda work: threads.submit(work).result()


def receive(connection: Connection) -> list[int]:
    with connection.transaction_with(SQL.receive(table=QUEUE), LOW) as rows:
        return [each.seq for each in rows]


def receive_and_wait(connection: Connection, seconds: float) -> None:
    with connection.transaction_with(SQL.receive(table=QUEUE), LOW):
        connection.value("select pg_sleep(%s)", [seconds])


def gone(connect: Connect, database: str, pid: int) -> None:
    until(lambda: connect(database).value("select count(*) from pg_stat_activity where pid = %s", [pid]) == 0)


def test_values_come_as_they_do_elsewhere(queue: Connection, elsewhere: Elsewhere) -> None:
    def both() -> Any:
        with queue.transaction_with(SQL.receive(table=QUEUE), LOW) as (found,):
            return found

    for ttbr_ms in (None, 30_000, 40_000, 2**40):
        elsewhere(partial(send, queue, ttbr_ms=ttbr_ms))
    for seq in range(1, 5):
        found = elsewhere(both)
        assert found._fields == ("id", "seq", "expired", "headers", "body")
        assert (found.seq, found.expired, found.headers, bytes(found.body)) == (seq, False, ROW["headers"], ROW["body"])


def test_begin_and_receive_are_one_round_trip_and_one_message(
    queue: Connection, elsewhere: Elsewhere, traced: Traced
) -> None:
    two_wait(queue, elsewhere)
    asked = elsewhere(lambda: traced(lambda: receive(queue)))
    assert asked.round_trips == 2  # the other one is the commit
    assert "begin; execute " in asked.text


def two_wait(queue: Connection, elsewhere: Elsewhere) -> None:
    """Send four and receive two: a receive is prepared from the second time on."""
    for _ in range(4):
        send(queue)
    for _ in range(2):
        elsewhere(lambda: receive(queue))


def received_in_turn(connection: Connection) -> list[int]:
    """Receive all messages; each commit carries the next receive."""
    found: list[int] = []
    begun: Any = connection.transaction_with(SQL.receive(table=QUEUE), LOW)
    while begun:
        with begun as rows:
            found += [each.seq for each in rows]
            begun = connection.commit_and_begin_with(SQL.receive(table=QUEUE), LOW) if rows else None
    return found


@pytest.mark.usefixtures("unhurried")
def test_a_commit_and_the_receive_behind_it_are_one_round_trip(
    queue: Connection, elsewhere: Elsewhere, traced: Traced
) -> None:
    for _ in range(6):
        send(queue)
    for _ in range(2):  # prepared from the second time on
        elsewhere(lambda: receive(queue))
    asked = elsewhere(lambda: traced(lambda: received_in_turn(queue)))
    assert asked.round_trips == 6  # four rows, an empty receive, and its commit
    assert asked.text.count("commit; begin; execute ") == 4
    assert bodies(queue) == []


def test_main_thread_pipelines_no_receive_behind_a_commit(queue: Connection) -> None:
    """Ctrl-C must be able to cancel the statement that the main thread waits for."""
    for _ in range(3):
        send(queue)
    assert receive(queue) + received_in_turn(queue) == [1, 2]
    assert bodies(queue) == [ROW["body"]]


def test_behind_a_refused_commit_nothing_begins(queue: Connection, elsewhere: Elsewhere) -> None:
    queue.run("create table parent (id integer primary key)")
    queue.run("create table child (id integer references parent deferrable initially deferred)")
    two_wait(queue, elsewhere)

    def refused() -> None:
        with queue.transaction_with(SQL.receive(table=QUEUE), LOW):
            queue.run("insert into child values (1)")
            queue.commit_and_begin_with(SQL.receive(table=QUEUE), LOW)

    with pytest.raises(errors.DatabaseError, match="foreign key"):
        elsewhere(refused)
    assert elsewhere(lambda: [receive(queue), receive(queue)]) == [[3], [4]]


@pytest.mark.usefixtures("unhurried")
def test_a_receive_that_is_refused_leaves_the_commit_before_it(
    queue: Connection, elsewhere: Elsewhere, database: str, connect: Connect
) -> None:
    two_wait(queue, elsewhere)

    def then_gone() -> Any:
        with queue.transaction_with(SQL.receive(table=QUEUE), LOW):
            queue.run("deallocate all")
            return queue.commit_and_begin_with(SQL.receive(table=QUEUE), LOW)

    begun = elsewhere(then_gone)
    assert bodies(connect(database)) == [ROW["body"]]
    with pytest.raises(errors.DatabaseError, match="does not exist"), begun:
        pytest.fail("nothing was received")
    assert elsewhere(lambda: receive(queue)) == [4]


def test_failed_statement_keeps_its_error_and_the_session_usable(queue: Connection, elsewhere: Elsewhere) -> None:
    nowhere = Address("public", "Nowhere")
    for _ in range(3):
        with pytest.raises(errors.TableMissing):
            elsewhere(lambda: queue.run(SQL.send(table=nowhere), row()))
        with pytest.raises(errors.TableMissing), queue.transaction_with(SQL.receive(table=nowhere), LOW):
            pytest.fail("there is no such table")
    elsewhere(lambda: send(queue))
    assert elsewhere(lambda: receive(queue)) == [1]


@pytest.mark.parametrize("upset", ["deallocate all", 'alter table "Sales" alter headers type varchar'])
def test_invalid_prepared_statement_is_prepared_again(queue: Connection, elsewhere: Elsewhere, upset: str) -> None:
    for _ in range(8):
        send(queue)
    for _ in range(3):
        elsewhere(lambda: receive(queue))
    queue.raw.execute(upset)
    with pytest.raises(errors.DatabaseError):
        elsewhere(lambda: receive(queue))
    assert [elsewhere(lambda: receive(queue)) for _ in range(4)] == [[4], [5], [6], [7]]


def test_the_server_ends_the_session_within_a_statement(
    queue: Connection, elsewhere: Elsewhere, database: str, connect: Connect
) -> None:
    pid = queue.value("select pg_backend_pid()")
    send(queue)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(lambda: receive_and_wait(queue, 3600))
        active = (
            "select count(*) from pg_stat_activity where pid = %s and query like '%%pg_sleep%%' and state = 'active'"
        )
        until(lambda: connect(database).value(active, [pid]))
        connect(database).value("select pg_terminate_backend(%s)", [pid])
        with pytest.raises(errors.DatabaseDown):
            waits.result()
    assert queue.closed
    assert bodies(connect(database)) == [ROW["body"]]


def test_cut_from_outside(queue: Connection, elsewhere: Elsewhere, database: str, connect: Connect) -> None:
    """As a stop interrupts a statement that does not end."""
    send(queue)
    with connect(database).transaction() as other, ThreadPoolExecutor(1) as threads:
        other.run('lock table "Sales"')
        waits = threads.submit(lambda: receive(queue))
        until(lambda: other.value("select count(*) from pg_locks where not granted"))
        queue.abort()
        with pytest.raises(errors.DatabaseDown):
            waits.result()


def test_after_a_pause_it_is_known_why_the_server_ended_the_session(
    queue: Connection, elsewhere: Elsewhere, database: str, connect: Connect
) -> None:
    """A timeout inside a transaction is the message's fault, a lost session is not."""
    queue.run("set idle_in_transaction_session_timeout = '50ms'")
    pid = queue.value("select pg_backend_pid()")

    def idle() -> None:
        with queue.transaction_with(SQL.receive(table=QUEUE), LOW):
            gone(connect, database, pid)

    with pytest.raises(errors.TransactionTooLong):
        elsewhere(idle)


def test_a_session_that_ended_while_nobody_used_it_says_so(queue: Connection, database: str, connect: Connect) -> None:
    assert not queue.is_closed_by_server()
    pid = queue.value("select pg_backend_pid()")
    connect(database).value("select pg_terminate_backend(%s)", [pid])
    gone(connect, database, pid)
    assert queue.is_closed_by_server()
