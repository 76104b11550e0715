"""What /readyz says of workers is what pages say of them."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.records import processes
from pgqueue_admin.records.models import Endpoint, Process

pytestmark = pytest.mark.usefixtures("console_database")


def workers() -> str:
    said: str = Client().get("/readyz").json()["parts"]["workers"]
    return said.replace("\N{NO-BREAK SPACE}", " ")


def heard(seconds: float) -> None:
    Process.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=seconds))


def test_a_process_is_lost_for_both_at_the_same_age() -> None:
    Endpoint.objects.create(name="Sales", table="Sales", desired_processes=1)
    for number, role in enumerate(("supervisor", "endpoint")):
        facts = {"pid": number + 1, "start_ticks": 1, "state": "running", "host": "here", "endpoint": "Sales"}
        now = timezone.now()
        Process.objects.create(role=role, started_at=now, heartbeat_at=now, **facts)
    heard(8)
    assert workers() == "ok"
    assert processes.of_endpoint("Sales").have == 1
    heard(12)
    assert workers() == "no supervisor has reported for 10 s"
    assert processes.of_endpoint("Sales").have == 0
    Process.objects.filter(role="supervisor").update(heartbeat_at=timezone.now())
    assert workers() == "0 of 1 processes run"
