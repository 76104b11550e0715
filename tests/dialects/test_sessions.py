"""Sessions: in UTC, raising only our own errors (dialects.errors)."""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.db import connections

from pgqueue_admin.dialects import Connection, errors
from pgqueue_admin.dialects.postgresql import driver_pool, postgresql
from pgqueue_admin.dialects.postgresql.session import translate
from tests.waiting import NOISE, until


def test_every_session_is_in_utc(database: str, connect: Callable[..., Connection]) -> None:
    name = database.rpartition("/")[2]
    connect(database).run(f"alter database {name} set timezone = 'America/New_York'")
    assert connect(database).value("show timezone") == "UTC"


ODD = {"datestyle": "German, DMY", "intervalstyle": "postgres_verbose", "standard_conforming_strings": "off"}
_TOLD = "select now() as at, interval '1 day 2 hours' as span, '\\d' as pattern"


def test_database_settings_do_not_change_how_values_are_read(
    console_database: str, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database's default date format is one from which no driver can read a time."""
    name = console_database.rpartition("/")[2]
    for setting, value in ODD.items():
        connect(console_database).run(f"alter database {name} set {setting} = '{value}'")
    monkeypatch.setenv("PGDATESTYLE", "SQL, DMY")
    pool = postgresql().pool(console_database)
    connections["default"].close()
    with pool.connection() as lent, connections["default"].cursor() as cursor:
        cursor.execute(_TOLD)
        for told in (connect(console_database).one(_TOLD), lent.one(_TOLD), cursor.fetchone()):
            assert told is not None
            assert (type(told[0]), told[1], told[2]) == (datetime, timedelta(days=1, hours=2), r"\d")
    pool.close()


def test_a_session_that_rested_for_too_long_is_lost_and_no_refusal() -> None:
    """The server's message before it closes the session. An endpoint starting on a busy machine would stop on it."""
    told = psycopg.errors.IdleSessionTimeout("terminating connection due to idle-session timeout")
    assert isinstance(translate(told), errors.DatabaseDown)


ELSEWHERE = ("08001", "08006", "53300", "57P01", "57P03")  # errors of another server, by a trigger or a foreign table


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ('select from "Nowhere"', errors.TableMissing),
        ("create table nowhere.t ()", errors.SchemaMissing),
        ("create table pg_catalog.t ()", errors.NotPermitted),
        ("select 1 / 0", errors.DatabaseError),
        ("selekt", errors.DatabaseError),
        ("create table twice (); create table twice ()", errors.AlreadyExists),
        *((f"do $$ begin raise 'dblink' using errcode = '{code}'; end $$", errors.DatabaseError) for code in ELSEWHERE),
        ("create type twice as enum ('a'); create table twice ()", errors.AlreadyExists),
    ],
)
def test_errors_are_ours(
    database: str, connect: Callable[..., Connection], statement: str, error: type[errors.DatabaseError]
) -> None:
    connection = connect(database)
    with pytest.raises(error) as raised:
        connection.all(statement)
    assert type(raised.value) is error
    assert str(raised.value).startswith(raised.value.sentence)


def test_a_statement_that_takes_too_long(database: str, connect: Callable[..., Connection]) -> None:
    connection = connect(database, statement_timeout=0.2)
    with pytest.raises(errors.TimedOut) as raised:
        connection.all("select pg_sleep(600)")
    assert str(raised.value).startswith(raised.value.sentence)


def test_a_read_only_session_says_so(database: str, connect: Callable[..., Connection]) -> None:
    with pytest.raises(errors.ReadOnly):
        connect(database, read_only=True).run("create table t ()")


def test_connection_to_a_closed_port_is_database_down() -> None:
    with pytest.raises(errors.DatabaseDown):
        postgresql().connect("postgresql://nobody@127.0.0.1:1/nowhere")


def lose(connection: Connection) -> None:
    with pytest.raises(errors.DatabaseDown):
        connection.run("select pg_terminate_backend(pg_backend_pid())")


def test_a_session_that_was_ended(connection: Connection) -> None:
    lose(connection)
    assert connection.closed


def test_a_transaction_that_ignored_a_failure_is_not_committed(connection: Connection) -> None:
    """The server would answer COMMIT with ROLLBACK, without an error."""
    connection.run("create table t (n integer)")
    with pytest.raises(errors.DatabaseError, match="ignored"), connection.transaction():  # noqa: PT012
        connection.run("insert into t values (1)")
        with pytest.raises(errors.TableMissing):
            connection.run("select from nowhere")
    assert connection.value("select count(*) from t") == 0


def test_a_transaction_on_a_lost_session_is_not_committed(connection: Connection) -> None:
    """The driver would leave the block without an error."""
    with pytest.raises(errors.DatabaseDown, match="nothing was committed"), connection.transaction():
        lose(connection)


def test_a_transaction_begins_with_its_first_statement_in_one_round_trip(
    connection: Connection, tmp_path: Path
) -> None:
    """By libpq's own trace: the server is ready twice, after begin with the statement and after the commit."""
    connection.run("create table t (n integer)")
    with (tmp_path / "trace").open("w+") as trace:
        connection.raw.pgconn.trace(trace.fileno())
        with connection.transaction_with("insert into t values (%s) returning n", [1]) as (row,):
            assert row.n == 1
        connection.raw.pgconn.untrace()
        assert trace.seek(0) == 0
        assert trace.read().count("ReadyForQuery") == 2
    assert connection.value("select count(*) from t") == 1


def test_a_transaction_with_a_statement_rolls_back_too(connection: Connection) -> None:
    connection.run("create table t (n integer)")
    with pytest.raises(ZeroDivisionError), connection.transaction_with("insert into t values (1) returning n"):
        raise ZeroDivisionError
    with pytest.raises(errors.TableMissing), connection.transaction_with("select from nowhere"):
        pytest.fail("its first statement failed")
    with (
        pytest.raises(errors.DatabaseError, match="nothing can be committed"),
        connection.transaction_with("insert into t values (2) returning n"),
        suppress(errors.TableMissing),
    ):
        connection.run("select from nowhere")
    assert connection.value("select count(*) from t") == 0


def test_a_failure_inside_a_savepoint_may_be_ignored(connection: Connection) -> None:
    connection.run("create table t (n integer)")
    with connection.transaction():
        connection.run("insert into t values (1)")
        with pytest.raises(errors.TableMissing), connection.transaction():
            connection.run("select from nowhere")
    assert connection.value("select count(*) from t") == 1


def test_the_drivers_errors_of_other_code_are_translated_too(connection: Connection) -> None:
    with pytest.raises(errors.DatabaseError), connection.transaction():
        raise psycopg.OperationalError("somebody used the raw session")


def test_a_session_is_cut_from_another_thread(database: str, connect: Callable[..., Connection]) -> None:
    """The server rolls back at once, while the session's thread is busy elsewhere."""
    session, other = connect(database), connect(database)
    other.run("create table t (n integer)")
    other.run("insert into t values (1)")
    with pytest.raises(errors.DatabaseDown), session.transaction():  # noqa: PT012
        session.run("delete from t")
        cutter = threading.Thread(target=session.abort)
        cutter.start()
        cutter.join()
        until(lambda: other.value("select count(*) from (select from t for update skip locked) t") == 1)
        session.run("select 1")
    session.abort()  # a second call does nothing


def test_notifications_arrive_at_once(
    connection: Connection, database: str, connect: Callable[..., Connection]
) -> None:
    connection.listen("orders")
    connect(database).notify("orders", "42")
    assert list(connection.notifications(60)) == [("orders", "42")]
    assert list(connection.notifications(0)) == []


def test_a_pool_lends_sessions_and_heals(database: str) -> None:
    pool = postgresql().pool(database, max_size=1)
    try:
        with pool.connection() as first:
            pid = first.value("select pg_backend_pid()")
        with pool.connection() as same:
            assert same.value("select pg_backend_pid()") == pid
            with pytest.raises(errors.DatabaseDown):
                same.run("select pg_terminate_backend(pg_backend_pid())")
        with pool.connection() as healed:
            assert healed.value("select pg_backend_pid()") != pid
    finally:
        pool.close()


def test_a_database_that_is_read_only_by_default_stays_so(database: str, connect: Callable[..., Connection]) -> None:
    """An administrator has protected it: a session that may write does not remove that protection."""
    name = database.rpartition("/")[2]
    connect(database).run(f"alter database {name} set default_transaction_read_only = on")
    with pytest.raises(errors.ReadOnly):
        connect(database).run("create table t ()")


def test_a_wire_that_is_cut_without_a_word_is_noticed(database: str, connect: Callable[..., Connection]) -> None:
    """If a network drops all packets, a session waits for seconds, not for the kernel's quarter of an hour."""
    pool = postgresql().pool(database)
    with pool.connection() as lent:
        for session in (connect(database), lent):
            with socket.socket(fileno=os.dup(session.fileno())) as wire:
                assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
                assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
    pool.close()


def test_tcp_user_timeout_of_the_url_applies(database: str, connect: Callable[..., Connection]) -> None:
    session = connect(f"{database}?tcp_user_timeout=4000")
    with socket.socket(fileno=os.dup(session.fileno())) as wire:
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 4000


def test_session_settings_of_an_address_hold_beside_ours_and_ours_win(
    database: str, connect: Callable[..., Connection]
) -> None:
    said = "-c work_mem=7MB -c statement_timeout=1 -c timezone=America/New_York -c default_transaction_read_only=off"
    address = f"{database}?options={quote(said)}"
    pool = postgresql().pool(address, read_only=True, statement_timeout=5)
    with pool.connection() as lent:
        for session in (lent, connect(address, read_only=True, statement_timeout=5)):
            shown = {name: session.value(f"show {name}") for name in ("work_mem", "statement_timeout", "timezone")}
            assert shown == {"work_mem": "7MB", "statement_timeout": "5s", "timezone": "UTC"}
            assert session.value("show default_transaction_read_only") == "on"
    pool.close()


def test_a_pool_that_is_refused_says_so_at_once() -> None:
    pool = postgresql().pool("postgresql://nobody@127.0.0.1:1/nothing")
    began = time.monotonic()
    with pytest.raises(errors.DatabaseDown, match="refused"), pool.connection():
        pass
    assert time.monotonic() - began < 1 * NOISE


def test_a_pool_waits_two_seconds_for_a_server_that_says_nothing(database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        pool = postgresql().pool(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing")
        began = time.monotonic()
        with pytest.raises(errors.DatabaseDown), pool.connection():
            pass
        assert time.monotonic() - began < 3 * NOISE


def test_a_session_that_lies_idle_on_a_frozen_server_is_left(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_pool, "SILENT_SECONDS", 0.2)
    pool = postgresql().pool(database, max_size=1)
    frozen, mute = socket.socketpair()  # accepts data and never answers
    with frozen, mute:
        with pool.connection() as first:
            pid = first.value("select pg_backend_pid()")
            os.dup2(frozen.fileno(), first.fileno())
        with pool.connection() as other:
            assert other.value("select pg_backend_pid()") != pid
    pool.close()


def test_a_session_left_within_a_transaction_is_lent_to_nobody(database: str) -> None:
    pool = postgresql().pool(database, max_size=1)
    with pool.connection() as first:
        pid = first.value("select pg_backend_pid()")
        first.run("begin")
    with pool.connection() as other:
        assert other.value("select pg_backend_pid()") != pid
    pool.close()


def test_a_pool_lends_no_more_sessions_than_it_has_room_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_pool, "WAIT_SECONDS", 0.1)
    pool = postgresql().pool(database, max_size=1)
    with pool.connection(), pytest.raises(errors.DatabaseDown, match="in use"), pool.connection():
        pass
    pool.close()
