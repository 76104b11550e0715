"""An answer that never comes: a relay before the server is stopped, and its kernel still acknowledges packets."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.dialects.errors import DatabaseDown, NoAnswer
from pgqueue_admin.dialects.postgresql import postgresql
from tests.dialects.sales import QUEUE, SQL
from tests.relay import Relay
from tests.waiting import until, within

LIMIT = 0.5
Ask = Callable[[Connection], Any]

HEARING = postgresql().monitor.server_time()


def _savepoint(session: Connection) -> None:
    with session.transaction():
        pass


ASKS: dict[str, Ask] = {
    "one of ours": lambda session: session.value(HEARING),
    "one of somebody's": lambda session: session.run("select 1"),
    "many in a round trip": lambda session: session.batch([(HEARING, None), (HEARING, None)]),
    "a transaction": _savepoint,
    "a transaction that begins with it": lambda session: session.transaction_with(HEARING).__enter__(),
    "listen": lambda session: session.listen("pgqueue_test"),
    "notify": lambda session: session.notify("pgqueue_test"),
    "rows by COPY": lambda session: session.copy_rows(SQL.load(table=QUEUE), [(bytes(16), None, "{}", b"")]),
}


@pytest.fixture
def relay(database: str) -> Iterator[Relay]:
    made = Relay(database)
    yield made
    made.end()


@pytest.fixture
def session(relay: Relay, connection: Connection, connect: Callable[..., Connection]) -> Connection:
    connection.run(SQL.create(table=QUEUE))
    return connect(relay.dsn, answer_seconds=LIMIT, application_name="pgqueue of a test")


def _in_thread(work: Callable[[], Any]) -> BaseException | None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for ever"
    return raised[0] if raised else None


def _here(work: Callable[[], Any]) -> BaseException | None:
    try:
        work()
    except BaseException as error:
        return error
    return None


@pytest.mark.parametrize("where", [_in_thread, _here], ids=["in a thread", "in the main thread"])
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize("times", [0, 3], ids=["asked for the first time", "prepared"])
def test_missing_answer_raises_within_the_limit(
    session: Connection,
    relay: Relay,
    ask: Ask,
    where: Callable[[Callable[[], Any]], BaseException | None],
    times: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each kind of request raises within the limit, logs one line, and closes the session."""
    for _ in range(times):
        session.value(HEARING)
    relay.stop()
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        error = where(lambda: ask(session))
    assert isinstance(error, NoAnswer)
    assert time.monotonic() - began < 10
    assert (session.closed, session.closed_locally) == (True, False)
    (line,) = (each for each in caplog.messages if "was given up" in each)
    assert line.startswith("Session 'pgqueue of a test' was given up: no answer for ")


def test_a_savepoint_has_the_limit(session: Connection, relay: Relay) -> None:
    def ask() -> None:
        with session.transaction():
            relay.stop()
            with session.transaction():
                pass

    assert isinstance(_here(ask), NoAnswer)


def test_the_commit_has_the_limit(session: Connection, relay: Relay, connection: Connection) -> None:
    """Its outcome is unknown, as with any lost session."""

    def ask() -> None:
        with session.transaction():
            session.run("create table made (id int)")
            relay.stop()

    assert isinstance(_in_thread(ask), DatabaseDown)
    assert connection.value("select to_regclass('made')") is None


def test_statements_of_a_handler_have_no_limit(session: Connection) -> None:
    session.lend(True)
    session.run(f"select pg_sleep({4 * LIMIT})")
    session.lend(False)
    assert isinstance(_here(lambda: session.run("select pg_sleep(60)")), NoAnswer)


def test_session_without_a_limit_waits_for_its_answer(relay: Relay, connect: Callable[..., Connection]) -> None:
    session = connect(relay.dsn)
    connect(relay.dsn, answer_seconds=LIMIT)  # another session has a limit
    session.run(f"select pg_sleep({4 * LIMIT})")
    assert session.ask_every == float("inf")


def test_a_session_at_rest_is_left_alone(session: Connection, relay: Relay) -> None:
    session.value(HEARING)
    relay.stop()
    threading.Event().wait(3 * LIMIT)
    relay.go_on()
    session.value(HEARING)


def test_an_answer_that_is_on_its_way_is_waited_for(database: str, connect: Callable[..., Connection]) -> None:
    """A large body over a slow link: it takes several times the limit, but bytes keep arriving."""
    relay = Relay(database, bytes_per_second=400_000)
    try:
        session = connect(relay.dsn, answer_seconds=LIMIT)
        began = time.monotonic()
        assert len(session.value("select repeat('x', 1000000)")) == 1_000_000
        assert time.monotonic() - began > 3 * LIMIT
    finally:
        relay.end()


def test_statement_over_the_limit_is_given_up_and_not_committed(session: Connection, connection: Connection) -> None:
    """The statement waits for a lock. Its caller can start again; the server rolls it back once the lock is free."""
    connection.run("create table held (id int)")

    def ask() -> None:
        with session.transaction():
            session.run("insert into held values (1)")

    with connection.transaction():
        connection.run("lock table held in access exclusive mode")
        assert isinstance(_here(ask), NoAnswer)
    until(lambda: not connection.value("select count(*) from pg_locks where relation = 'held'::regclass"))
    assert connection.value("select count(*) from held") == 0


def test_listening_session_notices_a_missing_server(session: Connection, relay: Relay) -> None:
    session.listen("pgqueue_test")
    relay.stop()

    def hears() -> bool:
        list(session.notifications(0.05))
        return False

    with pytest.raises(NoAnswer):
        within(3 * LIMIT, hears)


def test_notification_during_the_liveness_query_is_received(session: Connection, connection: Connection) -> None:
    session.listen("pgqueue_test")
    connection.notify("pgqueue_test", "1")
    session._alive_at = 0.0  # type: ignore[attr-defined]
    assert [heard.payload for heard in session.notifications(1.0)] == ["1"]


def test_sessions_of_a_pool_have_the_limit(relay: Relay) -> None:
    pool = dialect_for(relay.dsn).pool(relay.dsn, answer_seconds=LIMIT)
    with pool.connection() as session:
        relay.stop()
        assert isinstance(_here(lambda: session.run("select 1")), NoAnswer)
    relay.go_on()
    with pool.connection() as session:
        assert session.value("select 1") == 1
    pool.close()
