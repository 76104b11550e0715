"""What every store promises, on each dialect that has it (dialects.queue_store, delayed_store, subscription_store)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, dialect_for
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.queue_store import LOWEST, PeekResult, QueueRow
from tests import mssql
from tests.dialects.plain_dialect import plain

ROWS: list[QueueRow] = [("{}", b"first", None), ('{"n":"ż"}', b"", 60_000), ("{}", b"\0\xff", 0)]


class Place:
    """A database, and addresses in it."""

    def __init__(self, dialect: Any, dsn: str):
        self.dialect, self.dsn = dialect, dsn
        self.counts = dialect.multi_catalog and "range" not in dsn  # peek counts rows, S5; elsewhere the span, T10
        self.keeps_ids_apart = not dialect.multi_catalog  # a queue table of SQL Server has no key

    def address(self, table: str) -> Address:
        return self.dialect.address(self.dialect.default_schema, table)


@pytest.fixture(params=["postgresql", "plain", *mssql.METHODS])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param in mssql.METHODS:
        with request.getfixturevalue("mssql").database(request.param) as dsn:
            yield Place(dialect_for(dsn), dsn)
        return
    makes: dict[str, Callable[[], Any]] = {"postgresql": postgresql, "plain": plain}
    make = makes[request.param]
    yield Place(make(), request.getfixturevalue("database"))


@pytest.fixture
def sessions(place: Place) -> Iterator[Callable[[], Any]]:
    """Opens sessions; they are closed at the end."""
    opened: list[Any] = []

    def open_one() -> Any:
        opened.append(place.dialect.connect(place.dsn))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def session(sessions: Callable[[], Any]) -> Any:
    return sessions()


@pytest.fixture
def queue(place: Place, session: Any) -> Any:
    store = place.dialect.queue_store(place.address("Sales"))
    store.create(session)
    return store


@pytest.fixture
def delayed(place: Place, session: Any, queue: Any) -> Any:
    store = place.dialect.delayed_store(place.address("Sales.Delayed"), queue.address)
    store.create(session)
    return store


@pytest.fixture
def routing(place: Place, session: Any) -> Any:
    store = place.dialect.subscription_store(place.address("Routing"))
    store.create(session)
    return store


def send(session: Any, store: Any, rows: list[Any]) -> None:
    session.run_all(store.insertions(rows))


def receive(session: Any, queue: Any, low: int = LOWEST, most: int = 1) -> list[Any]:
    with session.transaction_with(*queue.receiving(low, most)) as rows:
        return sorted(rows, key=lambda row: row.seq)


def test_a_table_is_made_once_and_has_no_faults(queue: Any, session: Any) -> None:
    queue.create(session)
    assert list(queue.faults(session)) == []
    assert [fault.stops for fault in queue.faults(session, readable=True)] == [False]
    queue.add_body_column(session)
    queue.add_body_column(session)
    assert list(queue.faults(session, readable=True)) == []


def test_a_missing_table_stops_and_says_what_makes_it(place: Place, session: Any) -> None:
    queue = place.address("Sales")
    for store in (place.dialect.queue_store(queue), place.dialect.delayed_store(place.address("Sales.Delayed"), queue)):
        (fault,) = store.faults(session)
        assert "does not exist" in fault.said
        assert fault.cure


@pytest.mark.parametrize("many", [1, 3])
def test_rows_come_out_as_they_went_in_and_in_order(queue: Any, session: Any, many: int) -> None:
    send(session, queue, ROWS[:many])
    found = [row for _ in range(many) for row in receive(session, queue)]
    assert [(row.headers, row.body) for row in found] == [(headers, body) for headers, body, _ in ROWS[:many]]
    assert [row.expired for row in found] == [span == 0 for _, _, span in ROWS[:many]]
    assert [row.seq for row in found] == sorted(row.seq for row in found)
    assert len({row.id for row in found}) == many
    assert receive(session, queue) == []


def test_a_receive_takes_up_to_so_many_from_a_seq_on(queue: Any, session: Any) -> None:
    send(session, queue, ROWS)
    head = queue.peek(session).head
    assert [row.body for row in receive(session, queue, low=head + 1, most=5)] == [b"", b"\0\xff"]
    assert [row.body for row in receive(session, queue, most=5)] == [b"first"]


def test_rolled_back_row_returns_and_rows_in_flight_are_skipped(
    queue: Any, session: Any, sessions: Callable[[], Any]
) -> None:
    send(session, queue, ROWS)
    other = sessions()
    with suppress(ZeroDivisionError), session.transaction_with(*queue.receiving()) as rows:
        assert [row.body for row in rows] == [b"first"]
        assert [row.body for row in receive(other, queue)] == [b""]
        assert queue.peek(other).pending == 1
        assert queue.purge(other) == 1
        raise ZeroDivisionError
    assert [row.body for row in receive(session, queue, most=5)] == [b"first"]


def test_a_peek_counts_what_nobody_has_or_its_span(place: Place, queue: Any, session: Any) -> None:
    assert queue.peek(session) == PeekResult(0, LOWEST)
    send(session, queue, ROWS)
    pending, head = queue.peek(session)
    assert pending == 3
    receive(session, queue, low=head + 1)
    assert queue.peek(session) == PeekResult(2 if place.counts else 3, head)


def test_a_bulk_load_is_whole_or_refused(queue: Any, session: Any) -> None:
    with session.transaction():
        if not queue.load(session, iter(ROWS), {0, 60_000}):
            send(session, queue, ROWS)
    found = receive(session, queue, most=5)
    assert [(row.headers, row.body, row.expired) for row in found] == [
        (headers, body, span == 0) for headers, body, span in ROWS
    ]


def test_unreadable_row_keeps_its_id_unless_it_exists(place: Place, queue: Any, session: Any) -> None:
    row_id = "5f0c0c9e-9d0c-4d5e-8a1e-3a4b5c6d7e8f"
    for _ in range(2):
        queue.send_as_it_is(session, row_id, "no json", b"x")
    found = receive(session, queue, most=5)
    assert [row.headers for row in found] == ["no json"] * 2
    assert [row.id for row in found].count(row_id) == (1 if place.keeps_ids_apart else 2)


def test_a_purge_of_what_expired_leaves_the_rest(queue: Any, session: Any) -> None:
    send(session, queue, ROWS)
    assert queue.purge(session, expired_only=True) == 1
    assert queue.purge(session) == 2


def test_due_messages_are_moved_soonest_first(delayed: Any, queue: Any, session: Any) -> None:
    past = datetime.now(UTC) - timedelta(hours=1)
    rows = [
        DelayedRow("{}", b"now", None, 0),
        DelayedRow("{}", b"an hour ago", past, None),
        DelayedRow("{}", b"in an hour", None, 3_600_000),
    ]
    send(session, delayed, rows)
    with session.transaction():
        assert delayed.move_due(session, 1) == 1
    with session.transaction():
        assert delayed.move_due(session, 100) == 1
        left = delayed.next_due(session)
    assert [row.body for row in receive(session, queue, most=5)] == [b"an hour ago", b"now"]
    assert left is not None
    assert 3500 < left <= 3600


def test_a_move_that_is_rolled_back_leaves_all_where_it_was(delayed: Any, queue: Any, session: Any) -> None:
    send(session, delayed, [DelayedRow("{}", b"now", None, 0)])
    with suppress(ZeroDivisionError), session.transaction():
        assert delayed.move_due(session, 100) == 1
        raise ZeroDivisionError
    assert receive(session, queue) == []
    with session.transaction():
        assert delayed.move_due(session, 100) == 1
        assert delayed.next_due(session) is None


def test_an_endpoint_has_one_queue_a_topic(routing: Any, session: Any) -> None:
    assert list(routing.faults(session)) == []
    routing.subscribe(session, "Sales", "Shop.Placed", "old")
    routing.subscribe(session, "Sales", "Shop.Placed", "sales")
    routing.subscribe(session, "Billing", "Shop.Event", "billing")
    routing.subscribe(session, "Billing", "Shop.Placed", "billing")
    assert sorted(routing.subscribers(session, ["Shop.Placed", "Shop.Event"])) == ["billing", "sales"]
    routing.unsubscribe(session, "Sales", "Shop.Placed")
    routing.unsubscribe(session, "Sales", "Shop.Never")
    assert routing.subscribers(session, ["Shop.Placed"]) == ["billing"]
