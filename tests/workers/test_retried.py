"""The header that says which archived message was retried came over the wire: anybody may have written it."""

import pytest

from pgqueue_admin.archive.model import RETRIED_FROM
from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext
from pgqueue_admin.workers.retried import WithMark
from tests.waiting import until

TYPE = "Shop.PlaceOrder"
ONCE = EndpointSettings(immediate_retries=0, delayed_retries=0, notify=True, on_exhausted="error_queue")


def is_handled(queues: str, look: Connection, said: str) -> None:
    """One that says so of itself, once, and it is no error."""
    handled: list[str] = []
    handlers = Handlers()

    @handlers.handle(TYPE)
    def place(order: object, context: MessageContext) -> None:
        handled.append(context.message_id)

    endpoint = Endpoint("Sales", queues, settings=ONCE, handlers=WithMark(handlers, "Sales"))
    endpoint.create_queues()
    sent = endpoint.send("Sales", {}, type=TYPE, headers={RETRIED_FROM: said})
    endpoint.start()
    try:
        until(lambda: not look.value('select count(*) from "Sales"'), what="it has left its queue")
    finally:
        endpoint.stop()
    assert handled == [sent]
    assert look.value("select count(*) from error") == 0


@pytest.mark.parametrize("said", ["9" * 4_301, "0" * 4_301 + "1", "²", "٣", "-1", str(2**31), "", "1 or 1=1"])
def test_what_names_no_archived_message_fails_no_message(queues: str, look: Connection, said: str) -> None:
    is_handled(queues, look, said)


def test_an_archive_out_of_order_fails_no_message(queues: str, look: Connection) -> None:
    """Refused, the mark would take the receive transaction with it: handled work undone, at each retry again."""
    look.run("alter table messages.message_archive rename to elsewhere")
    is_handled(queues, look, "1")
