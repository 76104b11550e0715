"""Handlers that do what the message says and report which process did it."""

import os
import threading
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from pgqueue_admin.lease import DeadMessage, LeasedMessage
from pgqueue_admin.workers.processes.registry import endpoint, lease_endpoint

thumbs = lease_endpoint("Thumbs")
sales = endpoint("Sales")
_kept: list[bytes] = []


@thumbs.handle("render", schema={"properties": {"width": {"type": "integer"}}})
def render(message: dict[str, Any], lease: LeasedMessage) -> dict[str, int]:
    if message.get("hold"):
        _wait_for(Path(message["hold"]))
    if message.get("work"):
        threading.Event().wait(message["work"])
    if message.get("fail"):
        raise ValueError("told to fail")
    if message.get("die"):
        os._exit(7)
    if message.get("hoard"):
        _kept.append(b"\1" * 200_000_000)
    if message.get("models"):
        User.objects.count()
    return {"pid": os.getpid()}


@thumbs.on_dead("render")
def mourn(dead: DeadMessage) -> None:
    User.objects.count()
    if grave := dead.message.get("grave"):
        Path(grave).write_text(f"{dead.result}, attempt {dead.attempts}")


def _wait_for(path: Path) -> None:
    pause = threading.Event()
    path.with_suffix(".held").touch()
    while not path.exists():
        pause.wait(0.02)
