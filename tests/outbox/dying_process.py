"""An endpoint that kills itself at one place: dying_process.py DSN OUTBOX_DSN CONCURRENCY ISOLATION WHERE [NAME=DSN]….

WHERE is a place of ``PLACES`` or ``PLACES_OF_TWO_PHASES``, at the third message, or ``-``: it lives until it is killed.
Handlers enlist each database that is named.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.receiving.receive_with_outbox import ReceiveWithOutbox
from pgqueue_admin.transport.receiving.storage_transactions import EnlistedTransaction, StorageTransaction
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from tests.outbox.conftest import SETTINGS, charging

AT = 3  # the message at which it dies


def dies(owner: type, name: str, before: bool, at: int = AT) -> None:
    """At the third call, before or after what the method does."""
    real: Callable[..., Any] = getattr(owner, name)
    calls = count(1)

    def dying(*args: Any, **kwargs: Any) -> Any:
        is_time = next(calls) == at
        if is_time and before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **kwargs)
        if is_time:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, name, dying)


# The boundaries of the sheet's crash table, and those of our own order.
PLACES: dict[str, tuple[type, str, bool]] = {
    "before the record is looked for": (ReceiveWithOutbox, "was_handled", True),
    "before the handlers": (ReceiveWithOutbox, "was_handled", False),
    "before the record is stored": (ReceiveWithOutbox, "handled", True),
    "before the commit": (StorageTransaction, "commit", True),
    "between commit and dispatch": (StorageTransaction, "commit", False),
    "between dispatch and mark, or behind both": (Dispatcher, "dispatch", False),
    "between mark and the end of the message": (EndpointOutbox, "marking", False),
    "behind it": (ReceiveWithOutbox, "handled", False),
}


# With two enlisted databases, whose methods are called twice a message.
PLACES_OF_TWO_PHASES: dict[str, tuple[type, str, bool, int]] = {
    "before the first is prepared": (EnlistedTransaction, "prepare", True, 2 * AT - 1),
    "when the first is prepared": (EnlistedTransaction, "prepare", False, 2 * AT - 1),
    "when all are prepared": (EnlistedTransaction, "prepare", False, 2 * AT),
    "when it is decided": (StorageTransaction, "commit", False, AT),
    "when the first is committed": (EnlistedTransaction, "commit", False, 2 * AT - 1),
    "when all are committed": (EnlistedTransaction, "commit", False, 2 * AT),
}


def main(dsn: str, outbox_dsn: str, concurrency: Any, isolation: Any, where: str, *enlisted: str) -> None:
    logging.basicConfig(level=logging.ERROR)
    outbox = Outbox(
        dsn="" if outbox_dsn == dsn else outbox_dsn,
        concurrency=concurrency,
        isolation=isolation,
        databases=dict(each.split("=", 1) for each in enlisted),
        relay_after=None,
    )
    settings = replace(SETTINGS, concurrency=1 if where in PLACES_OF_TWO_PHASES else 2, outbox=outbox)
    endpoint = Endpoint("Billing", dsn, settings=settings, handlers=Handlers())
    charging(endpoint, "charges" if outbox_dsn.startswith("mysql") else "public.charges", outbox.databases)
    if where in PLACES:
        dies(*PLACES[where])
    if where in PLACES_OF_TWO_PHASES:
        dies(*PLACES_OF_TWO_PHASES[where])
    endpoint.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
