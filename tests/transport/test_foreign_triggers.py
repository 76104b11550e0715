"""Foreign triggers on queues: one that relies on the search path fails only the statement it runs for."""

import re

import pytest

from pgqueue_admin.dialects.errors import NameNotFound
from pgqueue_admin.transport import EndpointSettings
from pgqueue_admin.transport.wire import headers as h
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
NOTES = """
create table public.sent (id uuid);
create function public.note_it() returns trigger language plpgsql as $$
    begin insert into sent values (new.id); return new; end $$;
create trigger note_it before insert on public."Sales" for each row execute function public.note_it()
"""
SAID = 'relation "sent" does not exist'
CURE = re.compile(r"alter function public\.note_it\(\) set search_path = public, pg_temp")


@pytest.mark.parametrize("many", [1, 3, 30])
def test_a_send_says_what_is_not_found_and_what_mends_it(endpoint, connection, many):
    connection.run(NOTES)
    with pytest.raises(NameNotFound) as refused:
        endpoint.send_many("Sales", range(many), type=PLACE)
    assert SAID in str(refused.value)
    assert rows(endpoint.dsn, "Sales") == []
    cure = CURE.search(str(refused.value))
    assert cure
    connection.run(cure[0])
    endpoint.send_many("Sales", range(many), type=PLACE)
    assert connection.value("select count(*) from public.sent") == many


def test_a_handler_that_sends_there_fails_alone(make_endpoint, handlers, connection):
    endpoint = make_endpoint(
        "Web",
        settings=EndpointSettings(
            peek_delay=0.1, delayed_retries=0, immediate_retries=1, on_exhausted="error_queue",
            transaction_mode="receive_only",
        ),
    )  # fmt: skip
    make_endpoint("Sales")
    connection.run(NOTES)
    handled = []

    @handlers.handle(PLACE)
    def handle(number, context):
        if number == 1:
            context.send("Sales", number, type=PLACE)
        handled.append(number)

    endpoint.send_many("Web", range(3), type=PLACE)
    endpoint.start()
    (failed,) = until(lambda: rows(endpoint.dsn, "error"), what="the one that sends there is put away")
    until(lambda: {0, 2} <= set(handled), what="the others are handled")
    said = h.parse(failed.headers)["NServiceBus.ExceptionInfo.Message"]
    assert SAID in said
    assert CURE.search(said)
    assert failed.body == b"1"


def test_foreign_trigger_finds_its_names_in_the_receive_transaction(make_endpoint, handlers, connection):
    endpoint = make_endpoint("Web")
    make_endpoint("Sales")
    connection.run(NOTES)

    @handlers.handle(PLACE)
    def handle(number, context):
        context.send("Sales", number, type=PLACE)

    endpoint.send("Web", 1, type=PLACE)
    endpoint.start()
    until(lambda: connection.value("select count(*) from public.sent") == 1, what="it was noted")
