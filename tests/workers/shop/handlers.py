"""Handlers that do what the message says and record it in the database."""

import os
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import ProcessContext, endpoint

TYPE = "Shop.Do"

sales = endpoint("Sales")
broken = endpoint("Broken")


@sales.handle(TYPE)
def do(message: dict[str, Any], context: MessageContext) -> None:
    if message.get("hold"):
        _wait_for(Path(message["hold"]))
    if message.get("fail"):
        raise ValueError("told to fail")
    if asked := message.get("models"):
        _ask_models(within=asked == "in atomic")
    _note(context)


@broken.companion
def breaks(company: ProcessContext) -> None:
    raise RuntimeError("the shelf fell down")


def _wait_for(path: Path) -> None:
    pause = threading.Event()
    path.with_suffix(".held").touch()
    while not path.exists():
        pause.wait(0.02)


def _ask_models(within: bool) -> None:
    with transaction.atomic() if within else nullcontext():
        User.objects.count()


def _note(context: MessageContext) -> None:
    if context.connection is None:
        return  # mode none has no transaction to record it in
    modules = [name for name in ("celery", "kombu", "pyspark", "pgqueue_admin.alerts.checks") if name in sys.modules]
    row = [os.getpid(), context.message_id, context.message.row_id, context.message.seq, modules]
    context.connection.run(
        "insert into handled (pid, message_id, row_id, seq, modules) values (%s, %s, %s, %s, %s)", row
    )
