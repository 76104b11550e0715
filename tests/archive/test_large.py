"""Error queues with large failure texts drain in batches, and no message is changed."""

import json
import tracemalloc
from types import SimpleNamespace

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import MOST_HEADERS, ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import MOST_MESSAGE, MOST_TRACE, Failure
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage
from tests.archive.conftest import ERROR

WHOLE = "select md5(headers) as headers, md5(body) as body from {} order by seq"
PUT = """insert into public.error (id, headers, body)
    select gen_random_uuid(), '{{"NServiceBus.FailedQ":"Sales","{name}":"' || repeat('x', %(size)s) || '"}}', '\\x01'
    from generate_series(1, %(count)s)"""


@pytest.fixture
def error_queue(engine: Connection) -> Connection:
    engine.run(postgresql().queue.create(table=ERROR))
    return engine


def put(connection: Connection, count: int, size: int, name: str = h.EXCEPTION_STACK_TRACE) -> None:
    connection.run(PUT.format(name=name), {"count": count, "size": size})


def drained(connection: Connection) -> list[int]:
    """The number of messages that each batch moved."""
    moved = []
    while (batch := ingest(connection, ERROR)).full:
        moved.append(batch.moved)
    return [*moved, batch.moved]


def test_two_hundred_traces_of_a_megabyte_drain_unchanged(error_queue: Connection) -> None:
    """As one document they exceed jsonb's limit, and nothing would leave the queue any more."""
    put(error_queue, 200, 1_400_000)
    before = error_queue.all(WHOLE.format("public.error"))
    tracemalloc.start()
    moved = drained(error_queue)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(moved) == 200
    assert error_queue.all(WHOLE.format("messages.message_archive")) == before
    assert peak < 5 * MOST_HEADERS


def test_a_batch_ends_where_its_headers_are_large_enough(error_queue: Connection) -> None:
    put(error_queue, 2, MOST_HEADERS // 3)
    put(error_queue, 2, MOST_HEADERS + 1)
    put(error_queue, 2, 1)
    assert drained(error_queue) == [2, 1, 1, 2], "what is larger than a batch is a batch of its own"


@pytest.mark.parametrize("name", [h.EXCEPTION_MESSAGE, h.EXCEPTION_STACK_TRACE, h.FAILED_Q, h.EXCEPTION_TYPE])
def test_columns_hold_what_somebody_reads(error_queue: Connection, name: str) -> None:
    """The headers keep all of it."""
    put(error_queue, 1, 3_000_000, name)
    assert ingest(error_queue, ERROR).moved == 1
    kept = "select octet_length(to_jsonb(a) - 'headers' #>> '{}') from messages.message_archive a"
    assert error_queue.value(kept) < 2 * MOST_TRACE
    assert error_queue.value("select octet_length(headers) from messages.message_archive") > 3_000_000


def test_a_trace_keeps_both_of_its_ends(engine: Connection) -> None:
    """.NET's traces begin with the latest call, Python's end with it; our own failures have no other description."""
    trace = f"the first{'x' * MOST_TRACE}the last"
    said = json.dumps({h.MESSAGE_ID: "m", h.EXCEPTION_STACK_TRACE: trace, h.EXCEPTION_MESSAGE: trace})
    engine.run(postgresql().queue.create(table=ERROR))
    params = {"id": "00000000-0000-0000-0000-000000000001", "headers": said, "body": b"", "ttbr_ms": None}
    engine.run(postgresql().queue.send(table=ERROR), params)
    ingest(engine, ERROR)
    queue = Address("public", "Sales")
    row = SimpleNamespace(id=params["id"], seq=1, expired=False, headers=said, body=b"")
    message = IncomingMessage.of_row(queue, row)
    store.archive_failed(engine, dead_message(message, Failure("Sales", queue, "E", trace, trace), postgresql()))
    for row in engine.all("select stack_trace, exception_message from messages.message_archive"):
        assert row.stack_trace.startswith("the first")
        assert row.stack_trace.endswith("the last")
        assert "\n… 17 characters are left out here …\n" in row.stack_trace
        assert row.exception_message == trace[:MOST_MESSAGE]
    assert store.count(engine, ArchiveFilter(state=""), 10).number == 2
