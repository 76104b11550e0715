"""The endpoint Bookshop, whose handlers write through Django's models. It kills itself at one place; ``-``: it lives.

dying_models.py WHERE MODE OUTBOX: as ``bookshop``, at a place of ``PLACES`` at the third message.
"""

import sys
from typing import Any
from uuid import uuid4

import django

from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint, MessageContext
from pgqueue_admin.transport.ports import Unobserved
from pgqueue_admin.transport.receiving.receive_transaction import ReceiveTransaction
from pgqueue_admin.transport.receiving.receive_with_outbox import ReceiveWithOutbox
from pgqueue_admin.transport.receiving.storage_transactions import StorageTransaction
from tests.kill_points import dies
from tests.outbox.dying_process import AT

ORDER, BILL = "Shop.PlaceOrder", "Shop.Bill"

PLACES: dict[str, dict[str, tuple[type, str, bool]]] = {
    "off": {
        "when the handler is done": (ReceiveTransaction, "handled", True),
        "behind the commit": (ReceiveTransaction, "handled", False),
    },
    "optimistic": {
        "when the handler is done": (ReceiveWithOutbox, "handled", True),
        "before the commit": (StorageTransaction, "commit", True),
        "between commit and dispatch": (StorageTransaction, "commit", False),
        "between mark and the end of the message": (EndpointOutbox, "marking", False),
        "behind it": (ReceiveWithOutbox, "handled", False),
    },
}


def bookshop(mode: str, outbox: str, **settings: Any) -> tuple[Any, Any]:
    """An endpoint's row, and its declaration without handlers."""
    from pgqueue_admin.models import Endpoint as Row
    from pgqueue_admin.workers.processes.registry import DeclaredEndpoint

    said: dict[str, Any] = {
        "peek_delay_ms": 100,
        "concurrency": 2,
        "immediate_retries": 1,
        "delayed_retries": 0,
        "notify": False,
    }
    said |= {"on_exhausted": "error_queue", "error_queue": "error", "transaction_mode": mode, "outbox": outbox}
    return Row(name="Bookshop", table="Bookshop", **{**said, **settings}), DeclaredEndpoint("Bookshop")


def made(row: Any, declared: Any, observer: Any = None) -> Endpoint:
    from pgqueue_admin.workers.processes import runnable

    return runnable.transport_endpoint(row, declared, observer or Unobserved())


def order(number: int, context: MessageContext) -> None:
    """Add a row without a unique key, and send a message."""
    from django.contrib.auth.models import User

    User.objects.create(username=uuid4().hex, first_name=str(number))
    context.send("Sales", number, type=BILL)


def main(where: str, mode: str, outbox: str) -> None:
    django.setup()
    row, declared = bookshop(mode, outbox)
    declared.handle(ORDER)(order)
    if where != "-":
        dies(*PLACES[outbox][where], AT)
    made(row, declared).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
