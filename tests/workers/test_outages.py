"""Either database goes down and comes back: no process restarts, and nothing is lost."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from django.db import connections

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import Process
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.host import House, alive, want
from tests.workers.shop.handlers import TYPE

pytestmark = pytest.mark.chaos


class Outage:
    """One database of the server refuses all connections."""

    def __init__(self, admin: Connection, dsn: str):
        self._admin, self._name = admin, urlsplit(dsn).path.strip("/")

    def begin(self) -> None:
        connections.close_all()  # the test's own session
        self._admin.run(f"alter database {self._name} allow_connections false")
        self._admin.run(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{self._name}'")

    def end(self) -> None:
        self._admin.run(f"alter database {self._name} allow_connections true")


@pytest.fixture
def outage(server: PostgreSQL, connect: Callable[[str], Connection]) -> Iterator[Callable[[str], Outage]]:
    admin, begun = connect(server.dsn("postgres")), []

    def of(dsn: str) -> Outage:
        begun.append(Outage(admin, dsn))
        return begun[-1]

    yield of
    for each in begun:
        each.end()


def handled(look: Connection) -> int:
    return look.value("select count(*) from handled") or 0


def test_console_database_down_children_work_on_and_a_dead_one_is_replaced(
    house: House,
    sales: Endpoint,
    look: Connection,
    console_database: str,
    outage: Callable[[str], Outage],
) -> None:
    want(1)
    supervisor = house.supervise()
    (child,) = house.running(1)
    away = outage(console_database)
    away.begin()
    sales.send("Sales", {}, type=TYPE)
    until(lambda: handled(look) == 1, what="handled without the console's database")
    os.kill(child.pid, signal.SIGKILL)
    sales.send("Sales", {}, type=TYPE)
    until(lambda: handled(look) == 2, what="handled by a new one, with the settings last known")
    other = look.value("select max(pid) filter (where pid <> %s) from handled", [child.pid])
    assert supervisor.poll() is None
    away.end()
    (after,) = until(lambda: house.rows(ended_at=None, state="running", pid=other), what="reported afterwards")
    endpoints.save_settings("Sales", {"peek_delay_ms": 150}, "ana", "console")
    until(lambda: house.rows(id=after.id, settings_version=2), what="listening again")
    until(lambda: house.rows(pid=child.pid, state="crashed"), what="the death was written down")


def test_queue_database_down_children_reconnect_without_a_restart(
    house: House,
    sales: Endpoint,
    queues: str,
    connect: Callable[[str], Connection],
    outage: Callable[[str], Outage],
) -> None:
    want(1)
    house.supervise()
    (child,) = house.running(1)
    away = outage(queues)
    away.begin()
    endpoints.save_settings("Sales", {"peek_delay_ms": 150}, "ana", "console")
    until(lambda: house.rows(settings_version=2), what="the console is heard meanwhile")
    assert alive(child.pid)
    away.end()
    look = connect(queues)
    Endpoint("Sales", queues).send("Sales", {}, type=TYPE)
    until(lambda: handled(look) == 1, what="handled after the outage")
    assert look.value("select pid from handled") == child.pid


def test_a_child_that_starts_while_the_queue_database_is_away_waits_for_it(
    house: House,
    sales: Endpoint,
    queues: str,
    connect: Callable[[str], Connection],
    outage: Callable[[str], Outage],
) -> None:
    sales.send("Sales", {}, type=TYPE)
    sales.stop()
    away = outage(queues)
    away.begin()
    want(1)
    house.supervise()
    (child,) = house.running(1)
    away.end()
    look = connect(queues)
    until(lambda: handled(look) == 1, what="handled")
    assert look.value("select pid from handled") == child.pid


def test_expirer_survives_outages_of_either_database(
    house: House, queues: str, console_database: str, outage: Callable[[str], Outage]
) -> None:
    queue = LeaseQueue(queues)
    house.supervise(expirer=True)
    first = until(lambda: Process.objects.filter(role="expirer", ended_at=None).first(), what="it runs")

    def expires() -> None:
        until(lambda: _published(queue), what="a session again")
        until(lambda: queue.outlook().is_empty, what="its lock is ended")

    expires()
    away = outage(console_database)
    away.begin()
    expires()
    away.end()
    other = outage(queues)
    other.begin()
    other.end()
    expires()
    assert Process.objects.filter(role="expirer", ended_at=None, pid=first.pid).exists(), "the same process"
    queue.close()


def _published(queue: LeaseQueue) -> bool:
    with suppress(DatabaseError):
        queue.publish(1)
        return len(queue.claim(lock_for=0.5)) == 1
    return False
