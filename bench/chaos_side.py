"""A receiving process that may be killed at any moment: an endpoint whose handler notes what it was given, and sends.

python -m bench.chaos_side <dsn> <mode> <batch size> <journal>
"""

import os
import signal
import sys
import time
from typing import Any

from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext

WORK_SECONDS = 0.002  # so that there is always something in hand
NO_END = 1_000_000  # of retries: what a lost wire does to an attempt shall not make a message dead


def main(dsn: str, mode: Any, batch_size: int, journal: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    settings = EndpointSettings(
        peek_delay=0.1,
        concurrency=4,
        transaction_mode=mode,
        batch_size=batch_size,
        immediate_retries=0 if mode == "none" else NO_END,
        delayed_retries=0,
        on_exhausted="error_queue",
    )
    endpoint = Endpoint("Chaos", dsn, settings=settings, handlers=noting(journal))
    endpoint.start()
    signal.sigwait({signal.SIGTERM})
    endpoint.stop(30)


def noting(journal: str) -> Handlers:
    """Whole lines, appended: no transaction and no kill takes back that a handler ran."""
    handlers = Handlers()
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @handlers.handle("Chaos.Work")
    def work(body: dict[str, int], context: MessageContext) -> None:
        os.write(notes, b"%d\n" % body["n"])
        context.send("Effects", body, type="Chaos.Effect")
        time.sleep(WORK_SECONDS)

    return handlers


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
