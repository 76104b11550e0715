"""An idle worker runs one statement a minute unless it is notified of a message."""

from collections.abc import Iterator

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.lease import LeaseHandlers, LeaseQueue, LeaseSettings, LeaseWorker
from tests.lease.tables import archived
from tests.transport.statements_log import StatementsLog
from tests.waiting import until


@pytest.fixture
def worker(engine_database: str) -> Iterator[LeaseWorker]:
    """It looks every fifth of a second, not every minute. A liveness query a second must not count."""
    handlers = LeaseHandlers()
    handlers.handle()(lambda message, lease: None)
    settings = LeaseSettings(look_every=0.2, concurrency=2)
    worker = LeaseWorker("idle", engine_database, handlers, settings=settings, answer_seconds=1.0)
    yield worker
    worker.stop(0)


def test_idle_worker_asks_one_statement_a_look(
    worker: LeaseWorker, engine: Connection, queue: LeaseQueue, server: PostgreSQL
) -> None:
    assert LeaseSettings().look_every == 60
    log = StatementsLog(server, engine, "idle on new_message")
    worker.start()
    until(lambda: log.count("listen") == 1, what="it listens")
    until(lambda: log.count(r"select\s*$") >= 1, what="a first look")
    others = log.count(r"\S") - log.count(r"select\s*$")
    until(lambda: log.count(r"select\s*$") >= 10, what="ten looks")
    assert log.count(r"\S") - log.count(r"select\s*$") == others, "nothing else was asked"
    queue.publish(1)
    until(lambda: archived(engine), what="and told of one it takes it")
