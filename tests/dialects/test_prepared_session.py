"""Our statements through libpq itself: prepared, in few round trips, and as safe as through the driver."""

import _thread
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from pgqueue_admin.dialects import Address, Connection, errors
from tests.dialects.sales import QUEUE, ROW, SQL, Traced, bodies, row, send
from tests.waiting import until


def copy(queue: Connection) -> None:
    queue.copy_rows(SQL.load(table=QUEUE), [(bytes(16), None, "{}", b"copied")])


def test_values_go_and_come_as_they_do_through_the_driver(queue: Connection) -> None:
    for ttbr_ms in (None, 1, 40_000, 2**40):
        send(queue, ttbr_ms=ttbr_ms)
    with queue.transaction_with(SQL.receive(table=QUEUE), {"low": -(2**63)}) as (found,):
        assert found._fields == ("id", "seq", "expired", "headers", "body")
        assert (found.seq, found.expired, found.headers, bytes(found.body)) == (1, False, ROW["headers"], ROW["body"])
    with pytest.raises(errors.DatabaseError, match="NUL"):
        send(queue, headers="\0")


def test_a_statement_is_prepared_when_it_is_asked_again(queue: Connection, traced: Traced) -> None:
    assert [traced(lambda: send(queue)).text.count("Parse\t") for _ in range(4)] == [1, 1, 0, 0]


def test_more_statements_than_are_kept_are_asked_all_the_same(
    database: str, connect: Callable[..., Connection]
) -> None:
    session = connect(database, prepared_statements=1)
    for _ in range(3):
        session.run(SQL.create(table=QUEUE))
        send(session)
        assert session.all(SQL.peek(table=QUEUE))[0].head == 1
    assert session.value("select count(*) from pg_prepared_statements") == 1


def test_last_statements_share_the_commits_round_trip(queue: Connection, traced: Traced) -> None:
    for _ in range(3):
        send(queue)

    def handle() -> None:
        with queue.transaction_with(SQL.receive(table=QUEUE), {"low": 1}) as (found,):
            queue.run_last([(SQL.send(table=QUEUE), row(body=b"%d" % found.seq))])

    for _ in range(2):
        handle()
    assert traced(handle).round_trips == 2
    assert bodies(queue) == [b"1", b"2", b"3"]


def test_failed_last_statement_undoes_the_transaction(queue: Connection) -> None:
    send(queue)
    nowhere = Address("public", "Nowhere")
    with pytest.raises(errors.TableMissing), queue.transaction_with(SQL.receive(table=QUEUE), {"low": 1}):
        queue.run_last([(SQL.send(table=QUEUE), row()), (SQL.send(table=nowhere), row())])
    assert bodies(queue) == [ROW["body"]]
    with queue.transaction():
        send(queue, body=b"next")
    assert bodies(queue)[1:] == [b"next"]


def test_a_failure_in_many_undoes_all_of_them(queue: Connection) -> None:
    again = row()
    with pytest.raises(errors.AlreadyExists):
        queue.run_all([(SQL.send(table=QUEUE), again), (SQL.send(table=QUEUE), row()), (SQL.send(table=QUEUE), again)])
    assert bodies(queue) == []


def test_a_savepoint_in_a_transaction(queue: Connection) -> None:
    with queue.transaction():
        send(queue, body=b"kept")
        with suppress(ZeroDivisionError), queue.transaction():
            send(queue, body=b"undone")
            raise ZeroDivisionError
        with queue.raw.transaction():
            queue.raw.execute("""update "Sales" set headers = 'theirs'""")
    assert bodies(queue) == [b"kept"]


def test_a_transaction_that_somebody_ended_is_no_success(queue: Connection) -> None:
    with pytest.raises(errors.DatabaseError, match="ended the transaction"), queue.transaction():
        queue.raw.execute("commit")
    with pytest.raises(errors.DatabaseError, match="ended the transaction"), queue.transaction():  # noqa: PT012
        queue.raw.execute("commit")
        queue.run_last([(SQL.send(table=QUEUE), row())])
    assert bodies(queue) == []


@pytest.mark.parametrize("upset", ["deallocate all", "discard all", 'alter table "Sales" alter headers type varchar'])
def test_prepared_statements_that_no_longer_hold_are_prepared_again(queue: Connection, upset: str) -> None:
    """The current attempt fails, as any may; the next one succeeds."""
    for _ in range(6):
        send(queue)
    for _ in range(3):
        assert queue.one(SQL.receive(table=QUEUE), {"low": 1})
    queue.raw.execute(upset)
    with suppress(errors.DatabaseError):
        queue.one(SQL.receive(table=QUEUE), {"low": 1})
    assert queue.one(SQL.receive(table=QUEUE), {"low": 1})


def test_a_session_that_ends_between_two_statements(
    queue: Connection, database: str, connect: Callable[..., Connection]
) -> None:
    for _ in range(3):
        send(queue)
    pid = queue.value("select pg_backend_pid()")
    connect(database).value("select pg_terminate_backend(%s)", [pid])
    until(lambda: connect(database).value("select count(*) from pg_stat_activity where pid = %s", [pid]) == 0)
    with pytest.raises(errors.DatabaseDown) as raised, queue.transaction_with(SQL.receive(table=QUEUE), {"low": 1}):
        pytest.fail("there is nobody to receive from")
    assert raised.value.sqlstate == "57P01"
    assert queue.closed


@pytest.mark.parametrize("work", [send, copy])
def test_ctrl_c_ends_a_statement_that_waits(
    queue: Connection, database: str, connect: Callable[..., Connection], work: Callable[[Connection], None]
) -> None:
    """The session stays usable: the statement was cancelled, not left running."""
    other = connect(database)
    with other.transaction():
        other.run('lock table "Sales"')

        def interrupt() -> None:
            until(lambda: connect(database).value("select count(*) from pg_locks where not granted"))
            _thread.interrupt_main()

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            work(queue)
    send(queue, body=b"after")
    assert bodies(queue) == [b"after"]


def test_server_turned_read_only_ends_writing_sessions(database: str, connect: Callable[..., Connection]) -> None:
    """After a switch-over the address may lead to another server; the old one keeps its sessions and refuses writes."""
    session, protected = connect(database), connect(database, read_only=True)
    for each in (session, protected):
        each.run("set default_transaction_read_only = on")  # what the server reports once it was made read-only
        until(lambda each=each: each.is_closed_by_server() == (each is session))  # type: ignore[misc]
    session.run("set default_transaction_read_only = off")
    until(lambda: not session.is_closed_by_server())
