"""/readyz and pages agree on workers."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from pgqueue_admin.console.navigation import NavigationBadges
from pgqueue_admin.models import Endpoint, Process, processes
from tests.console.sampled import elsewhere, read_only
from tests.console.test_query_errors import NOBODY_ANSWERS

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


def test_draining_process_does_not_count_as_running() -> None:
    wants_one("Sales")
    runs("supervisor", "")
    runs("endpoint", "Sales", "draining")
    assert workers() == "0 of 1 processes run"
    assert NavigationBadges().workers == ("0 of 1", "mild")


def test_surplus_process_does_not_count_for_another_endpoint() -> None:
    for name in ("Sales", "Billing"):
        wants_one(name)
    runs("supervisor", "")
    for _ in range(2):
        runs("endpoint", "Sales")
    assert workers() == "1 of 2 processes run"
    assert NavigationBadges().workers == ("1 of 2", "mild")


PROBES = ("/healthz", "/readyz")
SOMEBODY = {"host": "10.244.3.7:8000"}  # a pod's address, as a kubelet sends it


@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("path", PROBES)
def test_probes_answer_whatever_host_says(
    settings: Settings, caplog: pytest.LogCaptureFixture, path: str, https: bool
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = https, ["console.example.org"]
    for host in (*SOMEBODY.values(), "evil example", "a" * 300, ""):
        answer = Client().get(path, headers={"host": host})
        assert answer.status_code == (200 if path == "/healthz" else 503)  # no sampler runs here
    assert "Host" not in caplog.text


@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("path", ["/", "/queues/", "/sign-in/", "/healthz/", "/readyz/x", "/nowhere"])
def test_every_other_address_is_strict_and_says_so_in_one_line(
    settings: Settings, caplog: pytest.LogCaptureFixture, path: str, https: bool
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = https, ["console.example.org"]
    answer = Client().get(path, headers=SOMEBODY)
    assert answer.status_code == 400
    assert b"ALLOWED_HOSTS" in answer.content
    assert [len(caplog.handler.format(each).splitlines()) for each in caplog.records] == [1]
    assert caplog.records[0].getMessage() == f"Refused: Host 10.244.3.7:8000 is not in ALLOWED_HOSTS: {path}"


def test_a_web_process_is_asked_only_for_what_it_needs() -> None:
    """A silent sampler must not take web processes out of a load balancer."""
    whole, needed = Client().get("/readyz"), Client().get("/readyz?for=web")
    assert (whole.status_code, needed.status_code) == (503, 200)
    assert needed.json() == {"ready": True, "parts": {"console database": "ok"}}
    with elsewhere("default", PORT=NOBODY_ANSWERS):
        assert Client().get("/readyz?for=web").status_code == 503
    with read_only("default"):
        assert Client().get("/readyz?for=web").status_code == 200  # pages still work
