"""What /readyz says of workers is what pages say of them."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console.navigation import Counts
from pgqueue_admin.records import processes
from pgqueue_admin.records.models import Endpoint, Process

pytestmark = pytest.mark.usefixtures("console_database")


def workers() -> str:
    said: str = Client().get("/readyz").json()["parts"]["workers"]
    return said.replace("\N{NO-BREAK SPACE}", " ")


def heard(seconds: float) -> None:
    Process.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=seconds))


def wants_one(name: str) -> None:
    Endpoint.objects.create(name=name, table=name, desired_processes=1)


def runs(role: str, endpoint: str, state: str = "running") -> None:
    now, pid = timezone.now(), Process.objects.count() + 1
    about = {"pid": pid, "start_ticks": 1, "state": state, "host": "here", "endpoint": endpoint}
    Process.objects.create(role=role, started_at=now, heartbeat_at=now, **about)


def test_a_process_is_lost_for_both_at_the_same_age() -> None:
    wants_one("Sales")
    runs("supervisor", "")
    runs("endpoint", "Sales")
    heard(8)
    assert workers() == "ok"
    assert processes.of_endpoint("Sales").have == 1
    heard(12)
    assert workers() == "no supervisor has reported for 10 s"
    assert processes.of_endpoint("Sales").have == 0
    Process.objects.filter(role="supervisor").update(heartbeat_at=timezone.now())
    assert workers() == "0 of 1 processes run"


def test_who_drains_is_not_there_any_more() -> None:
    wants_one("Sales")
    runs("supervisor", "")
    runs("endpoint", "Sales", "draining")
    assert workers() == "0 of 1 processes run"
    assert Counts().workers == ("0 of 1", "mild")


def test_one_endpoint_with_too_many_does_not_stand_in_for_one_with_none() -> None:
    for name in ("Sales", "Billing"):
        wants_one(name)
    runs("supervisor", "")
    for _ in range(2):
        runs("endpoint", "Sales")
    assert workers() == "1 of 2 processes run"
    assert Counts().workers == ("1 of 2", "mild")
