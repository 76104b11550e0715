"""A receiving process that may be killed at any moment: its handler records each message and sends another.

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

WORK_SECONDS = 0.002  # so that something is always in flight
NO_END = 1_000_000  # of retries: attempts lost with a connection must not make a message dead


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
    """A handler holds a message beyond the gate until it opens, and reports it: a kill finds one in flight."""

    def __init__(self, journal: Path, number: int):
        self.number = number
        self._waiting = journal.with_suffix(f".waiting-{number}")
        self._open = journal.with_suffix(f".open-{number}")

    @property
    def waiting(self) -> int:
        """The pid of the last process at the gate; 0 if none."""
        return int(self._waiting.read_text() or 0) if self._waiting.exists() else 0

    def open(self) -> None:
        self._open.touch()

    def pass_through(self, number: int) -> None:
        if number > self.number and not self._open.exists():
            self._waiting.write_text(str(os.getpid()))
            while not self._open.exists():
                time.sleep(0.01)


def noting(journal: Path, gates: Sequence[Gate]) -> Handlers:
    """Handlers that append whole lines to the journal: no rollback or kill removes the record of a run."""
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
