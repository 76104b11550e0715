"""Processes are wanted in all; supervisors divide them."""

from collections import Counter

import pytest

from pgqueue_admin.workers.supervisor.desired_state import share

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


def test_the_first_is_another_for_another_endpoint_and_the_same_for_the_same() -> None:
    """Every supervisor reckons for itself."""
    assert [share(1, index, 2, "Demo.Web") for index in (0, 1)] == [1, 0]
    assert [share(1, index, 2, "Demo.Billing") for index in (0, 1)] == [0, 1]
