"""A receiving process that may be killed at any moment: an endpoint whose handler notes what it was given, and sends.

python -m bench.chaos_side <dsn> <mode> <batch size> <journal> [<gate> …]
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext

WORK_SECONDS = 0.002  # so that there is always something in hand
NO_END = 1_000_000  # of retries: what a lost wire does to an attempt shall not make a message dead


def main(dsn: str, mode: Any, batch_size: int, journal: Path, gates: Sequence["Gate"]) -> None:
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
    endpoint = Endpoint("Chaos", dsn, settings=settings, handlers=noting(journal, gates))
    endpoint.start()
    signal.sigwait({signal.SIGTERM})
    endpoint.stop(30)


class Gate:
    """Who is given a message beyond it says so, and keeps it until the gate is open: a kill finds something in hand."""

    def __init__(self, journal: Path, number: int):
        self.number = number
        self._waiting = journal.with_suffix(f".waiting-{number}")
        self._open = journal.with_suffix(f".open-{number}")

    @property
    def waiting(self) -> int:
        """The pid of who came last; 0: nobody yet."""
        return int(self._waiting.read_text() or 0) if self._waiting.exists() else 0

    def open(self) -> None:
        self._open.touch()

    def pass_through(self, number: int) -> None:
        if number > self.number and not self._open.exists():
            self._waiting.write_text(str(os.getpid()))
            while not self._open.exists():
                time.sleep(0.01)


def noting(journal: Path, gates: Sequence[Gate]) -> Handlers:
    """Whole lines, appended: no transaction and no kill takes back that a handler ran."""
    handlers = Handlers()
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @handlers.handle("Chaos.Work")
    def work(body: dict[str, int], context: MessageContext) -> None:
        os.write(notes, b"%d\n" % body["n"])
        context.send("Effects", body, type="Chaos.Effect")
        time.sleep(WORK_SECONDS)
        for gate in gates:
            gate.pass_through(body["n"])

    return handlers


if __name__ == "__main__":
    journal = Path(sys.argv[4])
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), journal, [Gate(journal, int(gate)) for gate in sys.argv[5:]])
