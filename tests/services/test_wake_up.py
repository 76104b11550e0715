"""A retried message does not wait for the peek delay of our endpoint (C4)."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import single
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers
from tests.transport.statements_log import StatementsLog
from tests.waiting import until

TYPE = "Shop.Do"
PEEK_DELAY = 3600.0


def dead(connection: Connection, target: Any) -> int:
    about = {"queue": queue_database().dialect.canonical(target), "target": target, "message_id": str(uuid.uuid4())}
    headers = json.dumps({"NServiceBus.EnclosedMessageTypes": TYPE, "NServiceBus.MessageId": about["message_id"]})
    return store.archive_failed(
        connection, DeadMessage(**about, headers=headers, body=b"{}", died_at=datetime.now(UTC))
    )


@pytest.fixture
def log(server: PostgreSQL, archived_console: str, connect: Callable[[str], Connection]) -> StatementsLog:
    return StatementsLog(server, connect(archived_console), "Idle")


def test_an_idle_endpoint_takes_it_at_once(
    ana: User, archived_console: str, log: StatementsLog, connect: Callable[[str], Connection]
) -> None:
    seen: list[str] = []
    handlers = Handlers()
    handlers.handle(TYPE)(lambda body, context: seen.append(context.message_id))
    endpoint = Endpoint("Idle", archived_console, settings=EndpointSettings(peek_delay=PEEK_DELAY), handlers=handlers)
    endpoint.create_queues()
    Row.objects.create(name="Idle", table="Idle")
    archive_id = dead(connect(archived_console), endpoint.queue.address)
    endpoint.start()
    try:
        until(lambda: "peek" in log.asked_since("listen"), what="it listens, and has looked since it does")
        assert single.act("retry", archive_id, ana, "console").result == "done"
        until(lambda: seen, what="handled")
    finally:
        endpoint.stop()
