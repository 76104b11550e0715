"""The number of processes wanted on this host: supervisors divide it, and Start ends a back-off at once."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from pgqueue_admin.models import Process
from pgqueue_admin.services import endpoints
from pgqueue_admin.workers.supervisor.desired_state import share, start_now
from pgqueue_admin.workers.supervisor.role import RoleKey
from tests.workers.host import want

# The desired number is for all hosts; supervisors divide it.
ENDPOINTS = [f"Shop.{number}" for number in range(60)]


@pytest.mark.parametrize(("want", "shares"), [(0, [0, 0]), (1, [0, 1]), (4, [2, 2]), (5, [1, 2, 2]), (3, [3])])
@pytest.mark.parametrize("endpoint", ["Sales", *ENDPOINTS[:9]])
def test_shares_add_up_and_differ_by_one_at_most(want: int, shares: list[int], endpoint: str) -> None:
    found = [share(want, index, len(shares), endpoint) for index in range(len(shares))]
    assert sorted(found) == shares
    assert sum(found) == want


@pytest.mark.parametrize("hosts", [2, 3])
def test_endpoints_of_one_process_do_not_all_run_on_one_host(hosts: int) -> None:
    runs = Counter(host for endpoint in ENDPOINTS for host in range(hosts) if share(1, host, hosts, endpoint))
    assert sum(runs.values()) == len(ENDPOINTS)
    assert min(runs[host] for host in range(hosts)) > len(ENDPOINTS) / hosts / 2


def test_remainder_goes_to_a_host_fixed_for_each_endpoint() -> None:
    """Every supervisor computes its own share."""
    assert [share(1, index, 2, "Demo.Web") for index in (0, 1)] == [1, 0]
    assert [share(1, index, 2, "Demo.Billing") for index in (0, 1)] == [0, 1]


# Start ends a back-off at once; the end of an earlier crash's back-off does not.
SALES = RoleKey("endpoint", "Sales")


def waits(pid: int, seconds: float, host: str = "house-1", endpoint: str = "Sales") -> None:
    times = {"started_at": Now(), "heartbeat_at": Now(), "ended_at": Now()}
    due = {"state": Process.State.BACK_OFF, "next_start_at": Now() + timedelta(seconds=seconds)}
    Process.objects.create(host=host, pid=pid, start_ticks=1, role="endpoint", endpoint=endpoint, **times, **due)


@pytest.mark.usefixtures("console_database")
def test_back_off_ends_once_every_crashed_process_is_due() -> None:
    want(2)
    waits(1, -1)
    waits(2, 60)
    waits(3, -1, endpoint="Billing")
    waits(4, 60, host="house-2", endpoint="Billing")
    assert start_now("house-1") == {RoleKey("endpoint", "Billing")}
    endpoints.start("Sales", "ana", "console")
    assert start_now("house-1") == {SALES, RoleKey("endpoint", "Billing")}
