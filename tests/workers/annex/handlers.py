"""Handlers added to Sales: for a message type that the shop handles too, and for one of its own."""

from typing import Any

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import ProcessContext, endpoint

OWN_TYPE = "Annex.Do"
sales = endpoint("Sales")


@sales.handle(OWN_TYPE)
@sales.handle("Shop.Do", OWN_TYPE)
def also(message: Any, context: MessageContext) -> None:
    """Registered for two types, one of them the shop's. Counts the handlers that ran before it."""
    assert context.connection is not None
    asked = "insert into ran (message_id, before) select %s, count(*) from handled where message_id = %s"
    context.connection.run(asked, [context.message_id] * 2)
    if isinstance(message, dict) and message.get("annex_fails"):
        raise ValueError("told to fail")


@sales.companion
@sales.companion
def beside(company: ProcessContext) -> None:
    with company.endpoint.connect() as connection:
        connection.run("insert into ran (message_id) values ('beside')")
    company.stopping.wait()
