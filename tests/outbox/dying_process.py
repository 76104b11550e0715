"""An endpoint that kills itself at one place: dying_process.py DSN OUTBOX_DSN CONCURRENCY ISOLATION WHERE [NAME=DSN]….

WHERE is a place of the tables below, at the third message, or ``-`` to run until killed. At a place of
``PLACES_OF_THE_RELAY``, and with ``relay``, it relays and receives nothing. Handlers enlist each named database.
"""

import logging
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.receiving.receive_with_outbox import ReceiveWithOutbox
from pgqueue_admin.transport.receiving.storage_transactions import EnlistedTransaction, StorageTransaction
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from tests.kill_points import dies
from tests.outbox.conftest import SETTINGS, charging

AT = 3  # the message at which it dies


MARKED = "between mark and dispatch"


def dies_when_marked() -> None:
    """Die after the mark's statement and before its commit. Beside the queues, both normally go in one round trip."""
    real, calls = Dispatcher.dispatch, count(1)

    def dying(self: Dispatcher, connection: Any, outgoing: Any, last: bool = False, before: Any = ()) -> None:
        if next(calls) == AT:
            connection.run_all(before)
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, connection, outgoing, last, before)

    Dispatcher.dispatch = dying  # type: ignore[method-assign]


# The boundaries of the sheet's crash table and of our own order.
PLACES: dict[str, tuple[type, str, bool]] = {
    "before the record is looked for": (ReceiveWithOutbox, "was_handled", True),
    "before the handlers": (ReceiveWithOutbox, "was_handled", False),
    "before the record is stored": (ReceiveWithOutbox, "handled", True),
    "before the commit": (StorageTransaction, "commit", True),
    "between commit and dispatch": (StorageTransaction, "commit", False),
    "between dispatch and its commit, or behind both": (Dispatcher, "dispatch", False),
    "behind it": (ReceiveWithOutbox, "handled", False),
}

# With the record in another database: after the first of two commits.
PLACES_ELSEWHERE: dict[str, tuple[type, str, bool]] = {
    "between the commits of the sends and of the mark": (ReceiveWithOutbox, "dispatch_now", False),
    "between the commit of the mark and the end of the message": (ReceiveWithOutbox, "_dispatch_and_mark", False),
}

# After three records of the relay's transaction.
PLACES_OF_THE_RELAY: dict[str, tuple[type, str, bool]] = {
    "before the relay marks": (EndpointOutbox, "send_these", True),
    "when the relay has sent": (EndpointOutbox, "send_these", False),
    "when the relay has committed": (EndpointOutbox, "dispatched", True),
}
RELAYS = "relay"

# With two enlisted databases: each method runs twice a message.
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
    relays = where.startswith(RELAYS) or where in PLACES_OF_THE_RELAY
    outbox = Outbox(
        dsn="" if outbox_dsn == dsn else outbox_dsn,
        concurrency=concurrency,
        isolation=isolation,
        databases=dict(each.split("=", 1) for each in enlisted),
        relay_after=timedelta(milliseconds=50) if relays else None,
    )
    settings = replace(SETTINGS, concurrency=2 if where in {"-", *PLACES} else 1, outbox=outbox)
    endpoint = Endpoint("Billing", dsn, settings=settings, handlers=Handlers())
    charging(endpoint, "charges" if outbox_dsn.startswith("mysql") else "public.charges", outbox.databases)
    if where.endswith(MARKED):
        dies_when_marked()
    for places in (PLACES, PLACES_ELSEWHERE, PLACES_OF_TWO_PHASES, PLACES_OF_THE_RELAY):
        if where in places:
            dies(*places[where])
    if relays:
        assert endpoint.outbox
        endpoint.outbox.start()
        signal.pause()
    endpoint.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
