"""Handles SIGUSR1 in the main thread, as stack dumpers do. For processes only: importing it installs the handler."""

import os
import signal
from pathlib import Path
from typing import Any

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import endpoint

sales = endpoint("Sales")
signal.signal(signal.SIGUSR1, lambda *_: Path(os.environ["PGQUEUE_STATE_DIR"], "heard").touch())


@sales.handle("Shop.Do")
def do(message: dict[str, Any], context: MessageContext) -> None:
    assert context.connection is not None
    context.connection.run("insert into handled (pid) values (%s)", [os.getpid()])
