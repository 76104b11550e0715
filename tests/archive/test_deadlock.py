"""A retry that PostgreSQL chose as the victim of a deadlock."""

import threading
from collections.abc import Callable

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import Deadlock
from pgqueue_admin.transport import Endpoint
from tests.waiting import PATIENCE, held_up, until

SALES = Address("public", "Sales")
HOLD = "select id from messages.message_archive for update"


def retry(engine: Connection, dead: int, waiting: threading.Thread, look: Connection) -> None:
    """Hold what the other session waits for, then request what it holds."""
    with engine.transaction():
        engine.run(HOLD)
        waiting.start()
        until(lambda: held_up(look), what="the other waits for the retry")
        dead_messages.retry(engine, [dead], "ana")


def test_retry_raises_the_deadlock_and_keeps_the_message_dead(
    engine: Connection, engine_database: str, connect: Callable[[str], Connection]
) -> None:
    """The retry may be repeated as a whole: the queue refused nothing."""
    Endpoint("Sales", engine_database).create_queues()
    dead = store.archive_failed(engine, DeadMessage(queue='"public"."Sales"', target=SALES, headers="{}", body=b"{}"))
    other, look = connect(engine_database), connect(engine_database)
    engine.run("set deadlock_timeout = '10ms'")  # the first to check is the victim: the retry
    other.run("set deadlock_timeout = '1h'")
    with other.transaction():
        other.run('lock table "Sales"')
        waiting = threading.Thread(target=other.run, args=[HOLD])
        with pytest.raises(Deadlock):
            retry(engine, dead, waiting, look)
        waiting.join(PATIENCE)
    archived = store.get(engine, dead)
    assert archived
    assert archived.state == "dead"
    assert [outcome.result for outcome in dead_messages.retry(engine, [dead], "ana")] == ["done"]
