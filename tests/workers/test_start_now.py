"""Start ends a back-off at once; that its own time has come for an earlier crash does not."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from pgqueue_admin.models import Process
from pgqueue_admin.services import endpoints
from pgqueue_admin.workers.supervisor.desired_state import start_now
from pgqueue_admin.workers.supervisor.role import RoleKey
from tests.workers.host import want

SALES = RoleKey("endpoint", "Sales")


def waits(pid: int, seconds: float, host: str = "house-1", endpoint: str = "Sales") -> None:
    times = {"started_at": Now(), "heartbeat_at": Now(), "ended_at": Now()}
    due = {"state": Process.State.BACK_OFF, "next_start_at": Now() + timedelta(seconds=seconds)}
    Process.objects.create(host=host, pid=pid, start_ticks=1, role="endpoint", endpoint=endpoint, **times, **due)


@pytest.mark.usefixtures("console_database")
def test_all_that_crashed_have_to_be_due() -> None:
    want(2)
    waits(1, -1)
    waits(2, 60)
    waits(3, -1, endpoint="Billing")
    waits(4, 60, host="house-2", endpoint="Billing")
    assert start_now("house-1") == {RoleKey("endpoint", "Billing")}
    endpoints.start("Sales", "ana", "console")
    assert start_now("house-1") == {SALES, RoleKey("endpoint", "Billing")}
