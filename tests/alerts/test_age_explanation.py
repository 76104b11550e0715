"""The age warning of a queue explains, by its handlers, why the oldest message waits."""

from typing import Any

import pytest

from pgqueue_admin.models import Endpoint, Process
from tests.alerts.test_kinds import NOW, ago, found, look, queue


@pytest.mark.parametrize(
    ("rates", "processes", "said"),
    [
        ((0.0, 37.0), [(1, 1), (1, 1)], "slow, not missing: 2 of 2 slots busy, 0 /s arrive and 37 /s leave."),
        ((0.0, 37.0), [(0, 1)], "It empties: 0 /s arrive and 37 /s leave. See who receives;"),
        ((9.0, 5.0), [], "It does not empty at this rate: 9 /s arrive and 5 /s leave."),
        ((9.0, 0.0), [], "Nothing leaves, 9 /s arrive. See who receives;"),
        ((None, None), [], "Messages arrive quicker than they are handled, or are not handled at all."),
    ],
)
def test_the_warning_of_age_says_what_is_known(rates: Any, processes: list[tuple[int, int]], said: str) -> None:
    sample = {"ready": 3, "oldest_at": ago(600), "in_per_second": rates[0], "out_per_second": rates[1]}
    ours = Endpoint(name="Billing", schema="public", table="Billing")
    team = [
        Process(role="endpoint", endpoint="Billing", heartbeat_at=NOW, busy=busy, slots=slots)
        for busy, slots in processes
    ]
    seen = look(queues=[queue(sample=sample, target_age_seconds=60)], endpoints=[ours], processes=team)
    (aged,) = found("queue_age", seen)
    assert said in aged.said.meaning.replace("\u00a0", " ")
