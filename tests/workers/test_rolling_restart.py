"""A rolling restart: one process at a time over all hosts, the next once the new one is healthy."""

import os
import signal
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry, Endpoint, Process, processes
from pgqueue_admin.services import endpoint_change, endpoints
from pgqueue_admin.workers.supervisor import desired_state
from tests.waiting import until
from tests.workers.host import House, want


def process(host: str, pid: int, began_with: int, **facts: Any) -> Process:
    now = timezone.now()
    known = {"role": "endpoint", "endpoint": "Sales", "state": "running", "started_at": now, "heartbeat_at": now}
    return Process.objects.create(host=host, pid=pid, start_ticks=1, started_version=began_with, **{**known, **facts})


@pytest.fixture
def sales_row(console_database: str) -> Endpoint:
    return want(3, version=5, restart_version=5)


def turn(row: Endpoint) -> list[tuple[str, int]]:
    """The next process to restart, as computed on both hosts."""
    asked = [desired_state.next_to_replace(row, host) for host in ("app-1", "app-2")]
    return [(found.host, found.pid) for found in asked if found]


def test_hosts_agree_on_the_next_process_to_restart(sales_row: Endpoint) -> None:
    process("app-2", 2, 4), process("app-1", 9, 4), process("app-1", 8, 4)
    assert turn(sales_row) == [("app-1", 9)]
    Process.objects.filter(pid=9).update(started_version=5)
    assert turn(sales_row) == [("app-1", 8)]
    Process.objects.filter(pid=8).update(started_version=6)
    assert turn(sales_row) == [("app-2", 2)]
    Process.objects.filter(pid=2).update(started_version=5)
    assert (turn(sales_row), desired_state.is_rolling(sales_row)) == ([], False)


@pytest.mark.parametrize("state", ["starting", "draining", "back-off"])
def test_no_process_restarts_while_another_is_unhealthy(sales_row: Endpoint, state: str) -> None:
    process("app-1", 1, 4), process("app-1", 2, 4), process("app-2", 9, 0, role="supervisor", endpoint="")
    process("app-2", 3, 5, state=state, ended_at=timezone.now() if state == "back-off" else None)
    assert turn(sales_row) == []
    assert desired_state.is_rolling(sales_row)


def test_no_process_restarts_while_another_is_missing(sales_row: Endpoint) -> None:
    process("app-1", 1, 4), process("app-1", 2, 4)
    assert turn(sales_row) == []


def test_a_silent_host_holds_nothing_up(sales_row: Endpoint) -> None:
    long_ago = timezone.now() - timedelta(minutes=5)
    process("app-0", 7, 4, heartbeat_at=long_ago)
    for pid in (1, 2, 3):
        process("app-1", pid, 4)
    assert turn(sales_row) == [("app-1", 1)]


def test_a_back_off_of_a_host_that_is_gone_holds_nothing_up(sales_row: Endpoint) -> None:
    """A redeployed container has another name, so nothing closes the rows of the old one."""
    long_ago, now = timezone.now() - timedelta(seconds=11), timezone.now()
    process("app-0", 8, 0, role="supervisor", endpoint="", heartbeat_at=long_ago)
    process("app-0", 7, 4, state="back-off", ended_at=now, next_start_at=now + timedelta(minutes=2))
    for pid in (1, 2, 3):
        process("app-1", pid, 4)
    assert turn(sales_row) == [("app-1", 1)]
    assert processes.of_endpoint("Sales").waiting is None


def test_a_rolling_restart_goes_on_after_a_crash_that_nobody_replaces(house: House) -> None:
    """Scaled down while one waits for its restart."""
    want(2)
    house.supervise()
    first, second = house.running(2)
    for crash in range(1, 4):
        os.kill(second.pid, signal.SIGKILL)
        until(lambda: len(house.rows(ended_at__isnull=False)) == crash, what="its end")  # noqa: B023
        if crash < 3:
            _, second = sorted(house.running(2), key=lambda row: row.id)
    endpoints.scale("Sales", 1, "ana", "console")
    row = endpoints.restart("Sales", "ana", "console")
    until(lambda: house.rows(ended_at=None, state="running", started_version=row.version), what="the other is replaced")
    assert not house.rows(state="back-off")
    assert not house.rows(pid=first.pid, ended_at=None)


def test_a_stopped_endpoint_is_not_restarted(console_database: str) -> None:
    want(0)
    with pytest.raises(endpoint_change.ActRefused, match=r"Nothing was restarted\. Sales is stopped"):
        endpoints.restart("Sales", "ana", "console")


def test_every_process_is_replaced_one_after_the_other(house: House) -> None:
    want(2, drain_seconds=5)
    house.supervise()
    before = house.running(2)
    row = endpoints.restart("Sales", "ana", "console")
    assert AuditEntry.objects.filter(verb="restart", who="ana", subject="Sales").exists()
    until(lambda: house.rows(ended_at=None, state="running", started_version=row.version).__len__() == 2, what="anew")
    pids = [each.pid for each in before]
    until(lambda: len(house.rows(pid__in=pids, state="stopped")) == 2, what="the old ones are gone")
    gone = sorted(house.rows(pid__in=pids), key=lambda each: each.ended_at or each.started_at)
    came = sorted(house.rows(ended_at=None), key=lambda each: each.started_at)
    assert gone[0].ended_at is not None
    assert gone[1].drain_until is not None
    second_began_to_drain = gone[1].drain_until - timedelta(seconds=5)
    assert gone[0].ended_at <= second_began_to_drain
    assert came[0].started_at <= second_began_to_drain


def test_replacement_that_does_not_start_stops_the_rolling_restart(house: House, look: Connection) -> None:
    want(2)
    house.supervise()
    before = {each.pid for each in house.running(2)}
    look.run('alter table "Sales" rename to "Away"')
    endpoints.restart("Sales", "ana", "console")
    until(lambda: len(house.rows(ended_at__isnull=False, exit_code=1)) >= 2, what="a second crash")
    until(lambda: house.rows(pid__in=before, state="stopped"), what="one of the old ones is gone")
    (left,) = house.rows(ended_at=None, pid__in=before)
    assert left.drain_until is None, "the other old one stays as it is"
    look.run('alter table "Away" rename to "Sales"')
    endpoints.start("Sales", "ana", "console")
    until(lambda: house.rows(pid=left.pid, state="stopped"), what="it goes on once the new one is well")
    house.running(2)
