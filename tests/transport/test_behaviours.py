"""Behaviours around handlers, and mutators between messages and the wire."""

import gzip
from dataclasses import replace

import pytest

from pgqueue_admin.transport import BehaviourChain, Unrecoverable
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import insert, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
ALONE = replace(QUICK, concurrency=1)


def noting(noted, name):
    def behaviour(get_next):
        def around(message, context):
            noted.append(f"{name} before {message}")
            get_next(message, context)
            noted.append(f"{name} after")

        return around

    return behaviour


def done(endpoint):
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))


@pytest.mark.parametrize("batch_size", [1, 5])
def test_the_first_is_outermost_and_the_handlers_are_last(make_endpoint, handlers, batch_size):
    noted = []
    handlers.handle(PLACE)(lambda order, context: noted.append(f"handler {order}"))
    pipeline = BehaviourChain((noting(noted, "a"),)) | BehaviourChain((noting(noted, "b"),))
    endpoint = make_endpoint(pipeline=pipeline, settings=replace(ALONE, batch_size=batch_size))
    endpoint.send("Sales", 1, type=PLACE)
    done(endpoint)
    assert noted == ["a before 1", "b before 1", "handler 1", "b after", "a after"]


def test_behaviour_may_change_message_sends_and_outcome(make_endpoint, handlers):
    """Its sends belong to the message; a behaviour that does not call the next one handles the message itself."""
    make_endpoint("Billing")
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))

    def doubling(get_next):
        def around(number, context):
            context.send("Billing", context.headers["Tenant"], type="Shop.Charge")
            if number != 2:
                get_next(number * 10, context)

        return around

    endpoint = make_endpoint(pipeline=BehaviourChain((doubling,)), settings=ALONE)
    for number in (1, 2):
        endpoint.send("Sales", number, type=PLACE, headers={"Tenant": f"t{number}"})
    done(endpoint)
    assert seen == [10]
    assert [row.body for row in rows(endpoint.dsn, "Billing")] == [b'"t1"', b'"t2"']


def test_raising_behaviour_fails_the_message(make_endpoint, handlers, spy):
    handlers.handle(PLACE)(lambda order, context: None)

    def refusing(get_next):
        def around(message, context):
            get_next(message, context)
            raise PermissionError("not this tenant")

        return around

    endpoint = make_endpoint(pipeline=BehaviourChain((refusing,)), settings=ALONE)
    endpoint.send("Sales", 1, type=PLACE)
    done(endpoint)
    (row,) = rows(endpoint.dsn, "error")
    assert h.parse(row.headers)[h.EXCEPTION_MESSAGE] == "not this tenant"
    assert (spy.counts["failed"], spy.counts["handled"]) == (6, 0)


def test_incoming_messages_are_changed_before_they_are_read(make_endpoint, handlers):
    """Compressed bodies of one sender; audit and error queues get the message as received."""
    seen = []

    def unzipped(message):
        if message.headers.get("Content-Encoding") != "gzip":
            return message
        headers = {**message.headers, h.ENCLOSED_MESSAGE_TYPES: PLACE}
        return replace(message, raw_body=gzip.decompress(message.body), headers=headers)

    @handlers.handle(PLACE)
    def place(order, context):
        seen.append((order, context.message.type))
        if order == 2:
            raise Unrecoverable

    settings = replace(ALONE, audit_queue="audit")
    endpoint = make_endpoint(pipeline=BehaviourChain(incoming=(unzipped,)), settings=settings)
    bodies = [gzip.compress(b"1"), gzip.compress(b"2")]
    for body in bodies:
        insert(endpoint.dsn, "Sales", h.dump({"Content-Encoding": "gzip"}), body)
    done(endpoint)
    until(lambda: rows(endpoint.dsn, "error"))
    assert seen == [(1, PLACE), (2, PLACE)]
    assert [row.body for table in ("audit", "error") for row in rows(endpoint.dsn, table)] == bodies


def test_a_body_that_lies_elsewhere_is_no_empty_one(make_endpoint, handlers, spy):
    """A claim check: without a body, the message was acknowledged before its body could be fetched."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    fetched = {"a claim": b"1", "to nothing": b""}

    def fetch(message):
        return replace(message, raw_body=fetched[message.headers["Claim"]])

    endpoint = make_endpoint(pipeline=BehaviourChain(incoming=(fetch,)), settings=replace(ALONE, audit_queue="audit"))
    endpoint.send("Sales", b"", type=PLACE, headers={"Claim": "a claim"})
    endpoint.send("Sales", b"kept", type=PLACE, headers={"Claim": "to nothing"})
    done(endpoint)
    assert seen == [1]
    assert (spy.counts["failed"], spy.counts["handled"]) == (0, 1)
    assert [row.body for row in rows(endpoint.dsn, "audit")] == [b"", b"kept"]


@pytest.mark.parametrize("error", [ValueError("cut off"), Unrecoverable("cut off")])
def test_an_incoming_change_that_fails_is_a_failed_attempt(make_endpoint, handlers, spy, error):
    def failing(message):
        raise error

    handlers.handle(PLACE)(lambda order, context: None)
    endpoint = make_endpoint(pipeline=BehaviourChain(incoming=(failing,)), settings=ALONE)
    endpoint.send("Sales", 1, type=PLACE)
    done(endpoint)
    assert len(rows(endpoint.dsn, "error")) == 1
    assert spy.counts["failed"] == (1 if isinstance(error, Unrecoverable) else 6)


def test_outgoing_mutators_change_every_message_sent(make_endpoint, handlers):
    """Sent by an endpoint or by a handler, which knows its incoming message; each copy of a published event."""

    def stamped(message, cause):
        tenant = cause.headers["Tenant"] if cause else "outside"
        return replace(message, headers={"Tenant": tenant, **message.headers}, body=message.body + b" ")

    @handlers.handle(PLACE)
    def place(order, context):
        context.send("Billing", 1, type="Shop.Charge")
        context.publish(2, type="Shop.Placed")
        context.reply(3, type="Shop.Answer")

    make_endpoint("Billing").subscribe("Shop.Placed")
    endpoint = make_endpoint(pipeline=BehaviourChain(outgoing=(stamped,)), settings=ALONE)
    endpoint.send("Sales", {}, type=PLACE, headers={h.REPLY_TO_ADDRESS: "Billing"})
    (row,) = rows(endpoint.dsn, "Sales")
    assert (h.parse(row.headers)["Tenant"], row.body) == ("outside", b"{} ")
    done(endpoint)
    sent = rows(endpoint.dsn, "Billing")
    assert sorted(row.body for row in sent) == [b"1 ", b"2 ", b"3 "]
    assert {h.parse(row.headers)["Tenant"] for row in sent} == {"outside"}
