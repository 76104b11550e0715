"""Due messages are sent on their second by one child of the supervisor; once, even if several may (L9)."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import cron_jobs, postgresql
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.lease.schedules.runner import GRACE
from pgqueue_admin.models import Process
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.processes.lease_clocks import ScheduleClock
from tests.lease.test_schedules import ATTACHED, BILLING, NEIGHBOUR, STORE, add, due, outcomes, waiting
from tests.waiting import NOISE, until
from tests.workers.host import House


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def house(console_database: str, tmp_path: Path) -> Iterator[House]:
    house = House(console_database, console_database, tmp_path / "var")
    yield house
    house.close()


@pytest.mark.chaos
def test_supervisors_child_sends_at_the_due_second(house: House, look: Connection) -> None:
    house.supervise(expirer=True)
    until(lambda: Process.objects.filter(role="expirer", ended_at=None).exists(), what="it runs")
    until(lambda: look.value("select at from messages.schedule_look"), what="it has looked")
    schedule = add(look)
    due(look, schedule, *(timedelta(seconds=-ahead) for ahead in (59, 61, 62)))
    until(lambda: outcomes(look) == ["sent"] * 3, seconds=120, what="all were sent")
    late = look.all(
        "select extract(epoch from at - due_at) from messages.schedule_run where outcome = 'sent' order by 1"
    )
    assert late[0][0] < 1 * NOISE, "the first is seen with the minute's look, those after it at their second"
    assert look.value("select who from messages.schedule_look").startswith("supervisor on ")
    assert waiting(look) == 3


def test_clock_wakes_at_the_next_due_time_or_once_a_minute(look: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ScheduleClock()
    clock.run_once()
    assert 59 < clock.rest <= 60
    due(look, add(look), timedelta(seconds=-1))
    clock.run_once()
    assert clock.sent == 0
    now = time.monotonic() + 60
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock.run_once()
    assert clock.sent or clock.rest < 1 * NOISE
    monkeypatch.undo()


def test_child_beat_and_pg_cron_at_once_send_each_due_time_once(look: Connection, console_database: str) -> None:
    for number in range(20):
        due(look, add(look, f"no. {number}"), *(timedelta(seconds=each) for each in (1, 2, 3)))
    begin = threading.Barrier(6)

    def child() -> None:
        begin.wait(10)
        ScheduleClock().run_once()

    def beat() -> None:
        begin.wait(10)
        tasks.run_schedules()

    def pg_cron() -> None:
        with postgresql().connect(console_database) as session:
            begin.wait(10)
            session.all("select messages.run_schedules(500, interval '5 minutes', 'pg_cron')")

    with ThreadPoolExecutor(6) as pool:
        for each in [pool.submit(who) for who in (child, beat, pg_cron) * 2]:
            each.result(60)
    assert (waiting(look), outcomes(look)) == (60, ["sent"] * 60)


def _pg_cron(session: Connection) -> None:
    session.run(cron_jobs.jobs(session, postgresql(), GRACE)[-1].command)


@pytest.mark.parametrize(
    "send",
    [lambda _: ScheduleClock().run_once(), lambda _: tasks.run_schedules(), _pg_cron],
    ids=["child", "beat", "pg_cron"],
)
def test_schedules_run_no_code_of_other_roles(
    look: Connection, console_database: str, send: Callable[[Connection], None]
) -> None:
    Endpoint("Billing", console_database).create_queues()
    look.run(NEIGHBOUR)
    look.run(ATTACHED["trigger spies"][0])
    billing = add(look, "billing", to=BILLING)
    for schedule in (billing, add(look, "fine")):
        due(look, schedule, timedelta(seconds=20))
    send(look)
    assert outcomes(look) == [None, "sent"], "it is tried again"
    assert "trigger spies of role neighbour" in STORE.listed(look, billing)[0].error
    assert (look.value('select count(*) from "Billing"'), waiting(look)) == (0, 1)
