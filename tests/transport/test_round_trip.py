"""Any headers and bodies reach the handler unchanged, whichever way they are sent (T4, T5, T8)."""

import queue
from datetime import timedelta

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import EndpointSettings, Handlers, RawSerializer, Serializers
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.wire.message import OutgoingMessage

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = TEXTS.filter(lambda name: not name.startswith(("NServiceBus.", "ServiceControl.", "$.")))
HEADERS = st.dictionaries(NAMES, TEXTS | st.none(), max_size=5)
MANY = settings(max_examples=40)
PATIENT = 60


@pytest.fixture
def arrived():
    return queue.SimpleQueue()


@pytest.fixture
def running(make_endpoint, arrived):
    """An endpoint that receives bytes and is notified at once."""
    handlers = Handlers()
    handlers.handle("Any")(lambda body, context: arrived.put((context.headers, body)))
    hearing = EndpointSettings(concurrency=1, on_exhausted="error_queue")
    endpoint = make_endpoint("Sales", settings=hearing, handlers=handlers, serializers=Serializers(RawSerializer()))
    endpoint.start()
    return endpoint


@MANY
@given(HEADERS, st.lists(st.binary(min_size=1), min_size=1, max_size=3), st.booleans())
def test_from_send_to_handler(running, arrived, headers, bodies, in_a_transaction_of_ours):
    if in_a_transaction_of_ours:
        with psycopg.connect(running.dsn) as connection:
            ids = running.within(connection).send_many("Sales", bodies, type="Any", headers=headers)
    else:
        ids = running.send_many("Sales", bodies, type="Any", headers=headers)
    for message_id, body in zip(ids, bodies, strict=True):
        received, found = arrived.get(timeout=PATIENT)
        assert found == body
        assert {name: received[name] for name in headers} == headers
        assert received["NServiceBus.MessageId"] == message_id


@MANY
@given(st.lists(st.tuples(HEADERS, st.binary()), min_size=1, max_size=3))
def test_by_copy_and_through_the_delayed_table(endpoint, connection, messages):
    def outgoing():
        return [OutgoingMessage(endpoint.queue.address, headers, body, delay=timedelta()) for headers, body in messages]

    assert endpoint.queue.load(connection, outgoing())
    received = [endpoint.queue.receive(connection) for _ in messages]
    assert [(each.headers, each.body) for each in received] == messages
    delayed = DelayedTable(postgresql(), endpoint.queue.address)
    for message in outgoing():
        delayed.store(connection, [message])
        assert delayed.move_due(connection) == 1
        moved = endpoint.queue.receive(connection)
        assert (moved.headers, moved.body) == (message.headers, message.body)
