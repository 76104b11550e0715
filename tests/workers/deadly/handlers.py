"""Ways of ending a process that no exception handler catches."""

import ctypes
import os
import signal
import threading
from pathlib import Path
from typing import Any

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import endpoint

TYPE = "Shop.Deadly"
MB = 1_000_000

sales = endpoint("Sales")
_kept: list[bytes] = []


@sales.handle(TYPE)
def end_as_told(message: dict[str, Any], context: MessageContext) -> None:
    if gate := message.get("gate"):
        _wait_at(Path(gate))
    WAYS[message.get("way", "live")]()


def _wait_at(gate: Path) -> None:
    gate.with_suffix(".reached").touch()
    while not gate.exists():
        threading.Event().wait(0.02)


def _exit() -> None:
    os._exit(7)


def _leave() -> None:
    os._exit(0)


def _segfault() -> None:
    ctypes.string_at(0)


def _grow() -> None:
    """Allocate and touch more and more memory, up to more than any test allows; then wait to be killed."""
    kept: list[bytes] = []
    pause = threading.Event()
    while True:
        if len(kept) < 100:
            kept.append(b"\1" * (8 * MB))
        pause.wait(0.02)


def _hoard() -> None:
    """Succeed, but keep the memory."""
    _kept.append(b"\1" * (200 * MB))


def _linger() -> None:
    """The work is done, but the process cannot exit."""
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    os.kill(os.getpid(), signal.SIGTERM)


def _live() -> None: ...


WAYS = {
    "exit": _exit, "leave": _leave, "segfault": _segfault, "grow": _grow, "hoard": _hoard, "linger": _linger,
    "live": _live,
}  # fmt: skip
