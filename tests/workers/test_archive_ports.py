"""The header with the archived message of a retry is untrusted: any sender may write it."""

import json
from uuid import uuid4

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.messages import RETRIED_FROM, DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext
from pgqueue_admin.transport.wire.headers import MESSAGE_ID
from pgqueue_admin.workers.processes.archive_ports import MarkingHandlers
from tests.waiting import until

TYPE = "Shop.PlaceOrder"
ONCE = EndpointSettings(immediate_retries=0, delayed_retries=0, notify=True, on_exhausted="error_queue")


def is_handled(queues: str, look: Connection, said: str) -> None:
    """A message with such a header is handled once and does not fail."""
    handled: list[str] = []
    endpoint = endpoint_of("Sales", queues, handled)
    sent = endpoint.send("Sales", {}, type=TYPE, headers={RETRIED_FROM: said})
    empties(endpoint, look, "Sales")
    assert handled == [sent]
    assert look.value("select count(*) from error") == 0


def endpoint_of(name: str, queues: str, handled: list[str]) -> Endpoint:
    handlers = Handlers()

    @handlers.handle(TYPE)
    def place(order: object, context: MessageContext) -> None:
        handled.append(context.message_id)

    endpoint = Endpoint(name, queues, settings=ONCE, handlers=MarkingHandlers(handlers, name))
    endpoint.create_queues()
    return endpoint


def empties(endpoint: Endpoint, look: Connection, table: str) -> None:
    endpoint.start()
    try:
        until(lambda: not look.value(f'select count(*) from "{table}"'), what="all have left its queue")
    finally:
        endpoint.stop()


def test_a_forged_header_marks_nobodys_message(queues: str, look: Connection) -> None:
    """Such a header, sent to any queue of ours, marked a retried message as succeeded while it still waited."""
    handled: list[str] = []
    sales, other = endpoint_of("Sales", queues, handled), endpoint_of("Other", queues, handled)
    message_id = sales.send("Sales", {}, type=TYPE)
    headers = look.value('delete from "Sales" returning headers')
    dead = DeadMessage(
        queue='"public"."Sales"', target=Address("public", "Sales"), message_id=message_id, headers=headers, body=b"{}"
    )
    archive_id = store.archive_failed(look, dead)
    assert dead_messages.retry(look, [archive_id], "ana", ours=lambda address: True)[0].result == "done"
    true = json.loads(look.value('select headers from "Sales"'))[RETRIED_FROM]
    for said in (str(archive_id), true, f"{archive_id} {uuid4()}"):
        other.send("Other", {}, type=TYPE, headers={RETRIED_FROM: said, MESSAGE_ID: message_id})
    empties(other, look, "Other")
    with look.transaction():  # beside the true one, which stays in its queue
        look.run('create temp table aside on commit drop as select * from "Sales"')
        look.run('delete from "Sales"')
        for said in (str(archive_id), f"{archive_id} {uuid4()}"):
            forged = json.dumps({**json.loads(headers), RETRIED_FROM: said})
            insert = 'insert into "Sales" (id, headers, body) values (gen_random_uuid(), %(headers)s, %(body)s)'
            look.run(insert, {"headers": forged, "body": b"{}"})
        look.run("create table aside_of_sales as select * from aside")
    empties(sales, look, "Sales")
    state = "select state from messages.message_archive where id = %(id)s"
    assert (len(handled), look.value(state, {"id": archive_id})) == (5, "retried")
    look.run('insert into "Sales" select * from aside_of_sales')
    empties(sales, look, "Sales")
    assert (len(handled), look.value(state, {"id": archive_id})) == (6, "succeeded")


@pytest.mark.parametrize("said", ["9" * 4_301, "0" * 4_301 + "1", "²", "٣", "-1", str(2**31), "", "1 or 1=1"])
def test_invalid_retried_from_header_fails_no_message(queues: str, look: Connection, said: str) -> None:
    is_handled(queues, look, said)


def test_an_archive_out_of_order_fails_no_message(queues: str, look: Connection) -> None:
    """A refused mark would roll back the receive transaction: handled work undone, again at each retry."""
    look.run("alter table messages.message_archive rename to elsewhere")
    is_handled(queues, look, "1")
