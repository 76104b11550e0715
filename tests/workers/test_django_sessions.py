"""Handlers that use Django's models: each thread has its own sessions, and the database may be restarted."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

END_ALL = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


def handled(look: Connection) -> int:
    return look.value("select count(*) from handled") or 0


@pytest.mark.chaos
@pytest.mark.parametrize("asked", ["alone", "in atomic"])
def test_models_are_asked_again_after_their_sessions_were_ended(
    house: House,
    sales: Endpoint,
    look: Connection,
    console_database: str,
    connect: Callable[..., Connection],
    asked: str,
) -> None:
    want(1, concurrency=1)
    house.supervise()
    house.running(1)
    sales.send("Sales", {"models": asked}, type=TYPE)
    until(lambda: handled(look) == 1, what="its thread has a session")
    assert connect(console_database).value(END_ALL)
    for _ in range(5):
        sales.send("Sales", {"models": asked}, type=TYPE)
    until(lambda: sales.queue.peek(look) == 0, what="none is left")
    until(lambda: handled(look) + look.value("select count(*) from messages.message_archive") == 6)
    assert handled(look) == 6
