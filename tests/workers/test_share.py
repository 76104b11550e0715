"""Processes are wanted in all; supervisors divide them."""

import pytest

from pgqueue_admin.workers.desired import share


@pytest.mark.parametrize(("want", "shares"), [(0, [0, 0]), (1, [1, 0]), (4, [2, 2]), (5, [2, 2, 1]), (3, [3])])
def test_shares_add_up_and_differ_by_one_at_most(want: int, shares: list[int]) -> None:
    assert [share(want, index, len(shares)) for index in range(len(shares))] == shares
    assert sum(shares) == want
