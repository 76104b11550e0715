"""An endpoint on each dialect, whatever that dialect supports."""

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import DIALECTS, dialect_for
from pgqueue_admin.dialects.errors import Deadlock
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers
from pgqueue_admin.transport.sending import bulk
from tests import mssql
from tests.dialects import implicit_dialect, plain_dialect
from tests.waiting import until

PING, PLACED = "Shop.Ping", "Shop.Placed"
SETTINGS = EndpointSettings(
    peek_delay=0.1, concurrency=2, immediate_retries=1, delayed_retries=0, on_exhausted="error_queue"
)
ATOMIC, RECEIVE_ONLY = "sends_atomic_with_receive", "receive_only"
MODES = [(ATOMIC, 1), (ATOMIC, 10), (RECEIVE_ONLY, 1), (RECEIVE_ONLY, 10), ("none", 1)]

Make = Callable[..., Endpoint]


class Place:
    """A database of one dialect, read by statements that each dialect understands."""

    def __init__(self, dsn: str):
        self.dsn, self._dialect = dsn, dialect_for(dsn)
        self._is_sql_server = self._dialect.name == "sqlserver"

    def all(self, text: str) -> list[Any]:
        with self._dialect.connect(self.dsn, for_handlers=True) as session:
            found: list[Any] = session.all(text)
        return found

    def run(self, text: str) -> None:
        with self._dialect.connect(self.dsn, for_handlers=True) as session:
            session.run(text)

    def bodies(self, queue: str) -> list[bytes]:
        order = "RowVersion" if self._is_sql_server else "seq"
        return [bytes(body) for (body,) in self.all(f'select body from "{queue}" order by {order}')]

    def refuse_delayed(self) -> None:
        check = "with nocheck add check (1 = 0)" if self._is_sql_server else "add check (false) not valid"
        with self._dialect.connect(self.dsn, for_handlers=True) as session:
            session.run(f'alter table "Sales.Delayed" {check}')

    def rollback(self, session: Any) -> None:
        self.end(session.raw, "rollback")

    def end(self, raw: Any, how: str) -> None:
        """End the transaction in a handler's own code, unknown to the session; "error" rolls back silently."""
        words = {"error": "set xact_abort on; select 1 / 0"} if self._is_sql_server else {"error": "rollback"}
        cursor = raw.cursor()
        with suppress(Exception) if how == "error" else nullcontext():
            cursor.execute(words.get(how, how))


OWN = {
    plain_dialect.SCHEME: "tests.dialects.plain_dialect:plain",
    implicit_dialect.SCHEME: "tests.dialects.implicit_dialect:implicit",
}


@pytest.fixture(params=["postgresql", *OWN, *mssql.METHODS])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param in mssql.METHODS:
        with request.getfixturevalue("mssql").database(request.param) as dsn:
            yield Place(dsn)
        return
    for scheme, made_by in OWN.items():
        monkeypatch.setitem(DIALECTS, scheme, made_by)
    yield Place(f"{request.param}://{request.getfixturevalue('database').split('://', 1)[1]}")


@pytest.fixture
def make(place: Place) -> Iterator[Make]:
    made: list[Endpoint] = []

    def make(name: str = "Sales", **options: Any) -> Endpoint:
        made.append(Endpoint(name, place.dsn, **{"settings": SETTINGS, "handlers": Handlers(), **options}))
        made[-1].create_queues()
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.stop(drain_seconds=0)


@pytest.mark.parametrize(("mode", "size"), MODES)
def test_messages_are_handled_once_and_what_they_send_arrives(make: Make, place: Place, mode: Any, size: int) -> None:
    handled, lock = list[int](), threading.Lock()
    retries = 0 if mode == "none" else 1
    sales = make(settings=replace(SETTINGS, transaction_mode=mode, batch_size=size, immediate_retries=retries))
    make("Billing")

    @sales.handlers.handle(PING)
    def ping(number: int, context: Any) -> None:
        with lock:
            handled.append(number)
        context.send("Billing", number, type=PLACED)

    sales.send_many("Sales", range(200), type=PING)
    sales.start()
    until(lambda: len(place.bodies("Billing")) == 200)
    assert sorted(handled) == list(range(200))
    until(lambda: not place.bodies("Sales"))


@pytest.mark.parametrize("is_on", [True, False])
def test_expired_messages_are_purged_at_the_start_by_setting(
    make: Make, place: Place, caplog: pytest.LogCaptureFixture, is_on: bool
) -> None:
    """The purge runs before anything is received: while paused, the endpoint leaves the rest in the queue."""
    sales = make(settings=replace(SETTINGS, purge_expired_at_start=is_on))
    sales.pause()
    with sales.connect() as session:
        for expires_ms in (0, None, 0):
            row = (b"expired" if expires_ms == 0 else b"kept", expires_ms)
            session.run_all(sales.queue._store.insertions([('{"NServiceBus.MessageId":"m"}', *row)]))
    with caplog.at_level("INFO", "pgqueue_admin.transport"):
        sales.start()
    assert place.bodies("Sales") == ([b"kept"] if is_on else [b"expired", b"kept", b"expired"])
    assert ("has purged 2 expired messages" in caplog.text) is is_on


def test_a_purge_at_the_start_that_fails_holds_up_nothing(
    make: Make, place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = make(settings=replace(SETTINGS, purge_expired_at_start=True))
    handled = list[int]()
    sales.handlers.handle(PING)(lambda number, context: handled.append(number))

    def deadlocked(*about: Any) -> int:
        raise Deadlock("it was chosen as the victim", "40001")

    monkeypatch.setattr(sales, "purge", deadlocked)
    sales.send("Sales", 1, type=PING)
    sales.start()
    until(lambda: handled == [1])
    assert "has not purged what is expired" in caplog.text


def test_many_are_sent_without_a_bulk_load(make: Make, place: Place) -> None:
    make().send_many("Sales", range(bulk.MANY + 5), type=PING)
    assert list(map(int, place.bodies("Sales"))) == list(range(bulk.MANY + 5))


@pytest.mark.parametrize("size", [1, 10])
def test_a_failing_message_goes_to_the_error_queue_and_no_other_does(make: Make, place: Place, size: int) -> None:
    handled, lock = list[int](), threading.Lock()
    sales = make(settings=replace(SETTINGS, batch_size=size))
    make("Billing")

    @sales.handlers.handle(PING)
    def ping(number: int, context: Any) -> None:
        context.send("Billing", number, type=PLACED)
        if number == 3:
            raise ValueError("three")
        with lock:
            handled.append(number)

    sales.send_many("Sales", range(10), type=PING)
    sales.start()
    until(lambda: len(handled) == 9 and len(place.bodies("error")) == 1)
    until(lambda: not place.bodies("Sales"))
    assert place.bodies("error") == [b"3"]
    assert sorted(map(int, place.bodies("Billing"))) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_delayed_retry_and_a_delayed_message_come_when_they_are_due(make: Make, place: Place) -> None:
    seen = list[tuple[str, bool]]()
    settings = replace(SETTINGS, immediate_retries=0, delayed_retries=1, delayed_retry_step=0.1)
    sales = make(settings=settings)

    @sales.handlers.handle(PING)
    def ping(name: str, context: Any) -> None:
        is_first = (name, True) not in seen
        seen.append((name, is_first))
        if is_first and name == "fails":
            raise ValueError("at first")

    sales.send("Sales", "fails", type=PING)
    sales.send("Sales", "later", type=PING, delay=timedelta(seconds=0.2))
    sales.start()
    until(lambda: {("fails", False), ("later", True)} <= set(seen))
    until(lambda: not place.bodies("Sales"))
    assert place.all('select body from "Sales.Delayed"') == []
    assert place.bodies("error") == []


def test_without_a_delayed_table_it_goes_to_the_error_queue(make: Make, place: Place) -> None:
    """If a refused statement dooms the receive, at the next receive."""
    settings = replace(SETTINGS, immediate_retries=0, delayed_retries=3, delayed_retry_step=0.1)
    sales, attempts = make(settings=settings), list[int]()

    @sales.handlers.handle(PING)
    def ping(number: int, context: Any) -> None:
        attempts.append(number)
        raise ValueError("always")

    place.refuse_delayed()
    sales.send("Sales", 1, type=PING)
    sales.start()
    until(lambda: len(place.bodies("error")) == 1)
    until(lambda: not place.bodies("Sales"))
    assert attempts == [1]


def test_events_go_to_who_subscribed(make: Make, place: Place) -> None:
    sales, billing = make(), make("Billing")
    billing.subscribe(PLACED)
    sales.publish({"n": 1}, type=PLACED)
    assert place.bodies("Billing") == [b'{"n":1}']
    assert sales.purge() == 0
    assert billing.purge() == 1


def test_a_handler_that_ends_the_transaction_loses_nothing(make: Make, place: Place) -> None:
    """A rollback by the handler itself: the message comes back."""
    sales, seen = make(), list[str]()

    @sales.handlers.handle(PING)
    def ping(name: str, context: Any) -> None:
        seen.append(name)
        place.rollback(context.connection)

    sales.send("Sales", "rollback", type=PING)
    sales.start()
    until(lambda: len(place.bodies("error")) == 1)
    assert seen == ["rollback", "rollback"]


in_batches = pytest.mark.parametrize("place", ["postgresql", implicit_dialect.SCHEME, *mssql.METHODS], indirect=True)


@pytest.fixture
def batch_of_ten(make: Make, place: Place) -> Callable[..., list[int]]:
    """``batch_of_ten(act)``: each message sends, then acts. Returns the handled ones after all are done."""

    def run(act: Callable[[int, Any], None], retries: int = 0) -> list[int]:
        handled = list[int]()
        sales = make(settings=replace(SETTINGS, concurrency=1, batch_size=10, immediate_retries=retries))
        make("Billing")

        @sales.handlers.handle(PING)
        def ping(number: int, context: Any) -> None:
            context.send("Billing", number, type=PLACED)
            handled.append(number)
            act(number, context)

        sales.send_many("Sales", range(10), type=PING)
        sales.start()
        until(lambda: set(range(10)) <= set(handled) and not place.bodies("Sales"))
        until(lambda: len(place.bodies("Billing")) + len(place.bodies("error")) >= 10)
        assert sales.stop(drain_seconds=20), "nothing is in hand"
        return handled

    return run


@in_batches
@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("how", ["commit", "rollback", "error"])
def test_handler_that_ends_a_batch_transaction_fails_only_its_message(
    batch_of_ten: Callable[..., list[int]], place: Place, how: str, retries: int
) -> None:
    def act(number: int, context: Any) -> None:
        if number == 3:
            place.end(context.connection.raw, how)

    batch_of_ten(act, retries)
    assert sorted(map(int, place.bodies("Billing"))) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert place.bodies("error") == [b"3"]


@in_batches
@pytest.mark.parametrize("how", ["rollback", "error"])
def test_transaction_ended_during_another_message_is_noticed(
    batch_of_ten: Callable[..., list[int]], place: Place, how: str
) -> None:
    """Through a session kept from before: the message whose handler ends it has no savepoint of its own."""
    kept = list[Any]()

    def act(number: int, context: Any) -> None:
        if not kept:
            kept.append(context.connection.raw)
        elif number == 1 and len(kept) == 1:
            kept.append(None)
            place.end(kept[0], how)

    batch_of_ten(act, 1)
    assert sorted(map(int, place.bodies("Billing"))) == list(range(10))
    assert place.bodies("error") == []


@in_batches
def test_failed_message_of_a_batch_undoes_only_its_writes(batch_of_ten: Callable[..., list[int]], place: Place) -> None:
    def act(number: int, context: Any) -> None:
        context.connection.run(f"insert into written values ({number})")
        if number == 3:
            raise ValueError("three")

    place.run("create table written (number int)")
    batch_of_ten(act)
    assert [row[0] for row in place.all("select number from written order by number")] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert place.bodies("error") == [b"3"]


@in_batches
def test_rolled_back_batch_taken_by_another_receiver_is_not_handled(make: Make, place: Place) -> None:
    """Its row is gone, as after a commit. The other receiver sends for it, and for all that came back with it."""
    handled, taken = list[int](), list[bool]()
    sales = make(settings=replace(SETTINGS, concurrency=1, batch_size=10, immediate_retries=0))
    make("Billing")

    @sales.handlers.handle(PING)
    def ping(number: int, context: Any) -> None:
        handled.append(number)
        context.send("Billing", number, type=PLACED)
        if number == 3:
            place.rollback(context.connection)
            place.run('delete from "Sales"')
            taken.append(True)

    sales.send_many("Sales", range(10), type=PING)
    sales.start()
    until(lambda: taken == [True])
    sales.send("Sales", 10, type=PING)
    until(lambda: place.bodies("Billing"))
    assert sales.stop(drain_seconds=20)
    assert (handled, place.bodies("Billing")) == ([0, 1, 2, 3, 10], [b"10"])
