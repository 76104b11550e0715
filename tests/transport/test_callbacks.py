"""Instance queues, and replies that a caller waits for (T1; wire sheet 1.4, 7.2)."""

import logging
import threading
from dataclasses import replace

import pytest

from pgqueue_admin.transport import EndpointSettings, Handlers, SettingsRefused
from pgqueue_admin.transport.handling.callbacks import ReplyTimeout
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import Spy, insert, rows
from tests.waiting import until

PRICE, QUOTED = "Shop.QuotePrice", "Shop.Quoted"
HEARING = replace(QUICK, notify=True)
GENEROUS = 30


@pytest.fixture
def prices():
    """Handlers of the replying endpoint."""
    handlers = Handlers()
    handlers.handle(PRICE)(lambda asked, context: context.reply({"price": asked["n"] * 10}, type=QUOTED))
    handlers.handle("Shop.IsOpen")(lambda asked, context: context.reply_code(-3))
    handlers.handle("Shop.Silence")(lambda asked, context: None)
    return handlers


@pytest.fixture
def sales(make_endpoint, prices):
    endpoint = make_endpoint("Sales", settings=HEARING, handlers=prices, observer=Spy())
    endpoint.start()
    return endpoint


@pytest.fixture
def web(make_endpoint):
    endpoint = make_endpoint("Web", settings=HEARING, instance="node-1")
    endpoint.start()
    return endpoint


def test_an_answer_comes_to_the_instance_that_asked(sales, web):
    reply = web.ask("Sales", {"n": 7}, type=PRICE).reply(GENEROUS)
    assert (reply.body, reply.error_code) == ({"price": 70}, None)
    assert reply.headers[h.MESSAGE_INTENT] == "Reply"
    assert reply.headers[h.ENCLOSED_MESSAGE_TYPES] == QUOTED
    assert h.START_NEW_TRACE not in reply.headers  # no recorded reply has it


def test_an_answer_is_found_whatever_the_question_is_said_to_belong_to(sales, web):
    """Replies carry the request's own correlation id; with a foreign one the reply would find no caller."""
    asked = web.ask("Sales", {"n": 7}, type=PRICE, headers={h.CORRELATION_ID: "of another"})
    assert asked.reply(GENEROUS).body == {"price": 70}


def test_an_answer_may_be_a_number_alone(sales, web):
    """As the original's callbacks write it: a control message with no body, no type and no format."""
    reply = web.ask("Sales", {}, type="Shop.IsOpen").reply(GENEROUS)
    assert (reply.body, reply.error_code) == (None, -3)
    assert (reply.headers[h.CONTROL_MESSAGE], reply.headers[h.ERROR_CODE]) == ("True", "-3")
    assert not {h.ENCLOSED_MESSAGE_TYPES, h.CONTENT_TYPE} & set(reply.headers)


def test_request_names_the_instance_as_reply_address(make_endpoint, web):
    make_endpoint("Quiet")
    asked = web.ask("Quiet", {}, type=PRICE, headers={"Tenant": "a"})
    (row,) = rows(web.dsn, "Quiet")
    headers = h.parse(row.headers)
    assert headers[h.REPLY_TO_ADDRESS] == '"public"."Web.node-1"'
    assert headers[h.MESSAGE_ID] == headers[h.CORRELATION_ID] == asked.message_id
    assert headers["Tenant"] == "a"


def test_many_at_once_each_gets_its_own(sales, web):
    asked = [web.ask("Sales", {"n": number}, type=PRICE) for number in range(30)]
    assert [each.reply(GENEROUS).body["price"] for each in reversed(asked)] == [n * 10 for n in reversed(range(30))]


def test_two_instances_do_not_take_each_others_answers(sales, make_endpoint):
    nodes = [make_endpoint("Web", settings=HEARING, instance=name) for name in ("node-1", "node-2")]
    for node in nodes:
        node.start()
    asked = [node.ask("Sales", {"n": number}, type=PRICE) for node in nodes for number in range(5)]
    assert [each.reply(GENEROUS).body["price"] for each in asked] == [0, 10, 20, 30, 40] * 2


def test_handlers_may_wait_for_answers_in_all_slots(sales, make_endpoint):
    """Replies have slots of their own."""
    handlers, together, found = Handlers(), threading.Barrier(2), []

    @handlers.handle("Shop.Compare")
    def compare(message, context):
        together.wait(GENEROUS)
        found.append(web.ask("Sales", {"n": message}, type=PRICE).reply(GENEROUS).body["price"])

    web = make_endpoint("Web", settings=HEARING, instance="node-1", handlers=handlers)
    web.start()
    web.send_many("Web", [1, 2], type="Shop.Compare")
    until(lambda: sorted(found) == [10, 20], GENEROUS)


def test_missing_reply_raises_a_timeout(sales, web):
    asked = web.ask("Sales", {}, type="Shop.Silence")
    with pytest.raises(ReplyTimeout, match=f"{asked.message_id} within 0.05 s"):
        asked.reply(0.05)


def test_an_answer_that_comes_too_late_is_acknowledged_and_named(web, make_endpoint, caplog):
    make_endpoint("Quiet")
    asked = web.ask("Quiet", {}, type=PRICE)
    with pytest.raises(ReplyTimeout):
        asked.reply(0)
    with caplog.at_level(logging.WARNING, "pgqueue_admin.transport"):
        late = {h.MESSAGE_INTENT: "Reply", h.CORRELATION_ID: asked.message_id, h.ENCLOSED_MESSAGE_TYPES: QUOTED}
        insert(web.dsn, "Web.node-1", h.dump(late))
        until(lambda: rows(web.dsn, "Web.node-1") == [], GENEROUS)
        until(lambda: asked.message_id in caplog.text, GENEROUS)
    assert rows(web.dsn, "error") == []


def test_unreferenced_request_is_forgotten(web, make_endpoint):
    make_endpoint("Quiet")
    web.ask("Quiet", {}, type=PRICE)
    assert len(web.replies._waiting) == 0


def test_a_handler_of_the_answers_type_is_called_as_well(sales, make_endpoint):
    handlers, seen = Handlers(), []
    handlers.handle(QUOTED)(lambda body, context: seen.append(body))
    web = make_endpoint("Web", settings=HEARING, instance="node-1", handlers=handlers)
    web.start()
    assert web.ask("Sales", {"n": 1}, type=PRICE).reply(GENEROUS).body == {"price": 10}
    assert seen == [{"price": 10}]


def test_an_instance_queue_takes_messages_like_the_endpoints_own(make_endpoint):
    handlers, spy, seen = Handlers(), Spy(), []
    handlers.handle(PRICE)(lambda body, context: seen.append(body))
    web = make_endpoint("Web", settings=HEARING, instance="node-1", handlers=handlers, observer=spy)
    web.start()
    web.send(web.instance_queue.address, 1, type=PRICE)
    web.send("Web", 2, type=PRICE)
    until(lambda: sorted(seen) == [1, 2], GENEROUS)
    web.pause()
    web.send(web.instance_queue.address, 3, type=PRICE)
    web.resume()
    until(lambda: 3 in seen, GENEROUS)


def test_slots_of_two_queues_have_numbers_of_their_own(make_endpoint):
    handlers, spy, go = Handlers(), Spy(), threading.Event()
    handlers.handle(PRICE)(lambda body, context: go.wait(GENEROUS))
    web = make_endpoint("Web", settings=HEARING, instance="node-1", handlers=handlers, observer=spy)
    web.start()
    for queue in web.queues:
        web.send_many(queue.address, range(2), type=PRICE)
    until(lambda: sorted(spy.hands) == [0, 1, 2, 3], GENEROUS)
    assert web.in_flight == 4
    go.set()
    until(lambda: web.in_flight == 0, GENEROUS)


def test_without_a_queue_for_them_there_are_no_answers(sales, make_endpoint):
    with pytest.raises(ValueError, match="instance="):
        sales.ask("Sales", {}, type=PRICE)
    with pytest.raises(ValueError, match="start it"):
        make_endpoint("Web", instance="node-1").ask("Sales", {}, type=PRICE)


def test_an_instance_queue_must_fit_too(make_endpoint):
    with pytest.raises(SettingsRefused, match=r"instance name .* 1 bytes too long"):
        make_endpoint("Web", instance="n" * 52)
    make_endpoint("Web", instance="n" * 51, settings=EndpointSettings())
