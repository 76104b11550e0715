"""Moving a waiting message into the archive takes that row alone, and only while it is not in flight."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from pgqueue_admin.archive import held_row, move_to_archive, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.move_to_archive import MoveReason
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.transport import Endpoint

SALES = Address("public", "Sales")
WHY = MoveReason("ana", "Sales", "app-1", "In flight at 3 deaths of its process.", 3)


@pytest.fixture
def sales(engine: Connection, engine_database: str) -> Endpoint:
    endpoint = Endpoint("Sales", engine_database)
    endpoint.create_queues()
    return endpoint


def test_exactly_that_row_is_moved_as_it_was(engine: Connection, sales: Endpoint) -> None:
    for number in range(3):
        sales.send("Sales", {"number": number}, type="Shop.Do")
    first, second, third = engine.all('select id, seq, headers, body from "Sales" order by seq')
    archive_id = move_to_archive.move_out(engine, SeenRow(SALES, second.id, second.seq), WHY)
    assert [row.id for row in engine.all('select id from "Sales" order by seq')] == [first.id, third.id]
    dead = store.get(engine, archive_id)
    assert dead is not None
    assert (dead.state, dead.result, dead.headers, dead.row_id) == ("dead", "failed", second.headers, second.id)
    assert (dead.target, dead.endpoint, dead.machine, dead.attempts) == (SALES, "Sales", "app-1", 3)
    assert (dead.exception_type, dead.exception_message) == ("ProcessEnded", WHY.sentence)
    assert engine.value("select body from messages.message_archive") == second.body
    assert [(event.verb, event.who) for event in store.events(engine, archive_id)] == [("moved out", "ana")]
    assert dead.why_no_retry is None


def test_message_in_flight_is_not_moved_and_not_waited_for(
    engine: Connection, sales: Endpoint, engine_database: str, connect: Callable[[str], Connection]
) -> None:
    sales.send("Sales", {}, type="Shop.Do")
    row, receiver = engine.one('select id, seq from "Sales"'), connect(engine_database)
    assert row is not None
    with receiver.transaction():
        assert sales.queue.receive(receiver)
        with pytest.raises(held_row.MessageInFlight):
            move_to_archive.move_out(engine, SeenRow(SALES, row.id, row.seq), WHY)
    assert not store.page(engine, ArchiveFilter()).messages


def test_missing_message_is_reported_as_gone(engine: Connection, sales: Endpoint) -> None:
    with pytest.raises(held_row.MessageGone):
        move_to_archive.move_out(engine, SeenRow(SALES, uuid4(), 1), WHY)
    assert not move_to_archive.is_there(engine, SALES, uuid4())
    assert not move_to_archive.is_there(engine, Address("public", "Nowhere"), uuid4())


def test_lost_answer_is_settled_by_ones_own_move_only(engine: Connection, sales: Endpoint) -> None:
    """If two people act at once, the other's move must not be audited as done by both."""
    sales.send("Sales", {}, type="Shop.Do")
    row = engine.one('select id, seq from "Sales"')
    assert row is not None
    archive_id = move_to_archive.move_out(engine, SeenRow(SALES, row.id, row.seq), WHY)
    assert move_to_archive.moved(engine, SeenRow(SALES, row.id, row.seq), "bo") is None
    assert move_to_archive.moved(engine, SeenRow(SALES, row.id, row.seq), "ana") == archive_id


def test_unreadable_headers_and_a_missing_body_are_moved_as_they_are(engine: Connection, sales: Endpoint) -> None:
    engine.run("insert into \"Sales\" (id, headers, body) values (gen_random_uuid(), '{broken', null)")
    row = engine.one('select id, seq from "Sales"')
    assert row is not None
    dead = store.get(engine, move_to_archive.move_out(engine, SeenRow(SALES, row.id, row.seq), WHY))
    assert dead is not None
    assert (dead.headers, dead.body_bytes) == ("{broken", None)
    assert dead.why_no_retry
