"""A host whose supervisor vanishes raises an alert until it returns or a user declares it gone."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import F
from django.test import Client

from pgqueue_admin.alerts.dead_message_cursor import CursorReading
from pgqueue_admin.alerts.evaluation import Evaluation
from pgqueue_admin.alerts.snapshot import look as look_at
from pgqueue_admin.models import Alert, AuditEntry, Process, database_clock
from tests.waiting import until
from tests.workers.host import House, want

GONE = {"kind": "host_lost", "subject": "house-2"}


@pytest.fixture
def other(house: House, console_database: str, queues: str, tmp_path: Path) -> Iterator[House]:
    """The second of two hosts that share three processes."""
    want(3)
    other = House(console_database, queues, tmp_path / "other", "house-2")
    house.supervise()
    other.supervise()
    other.running(1)
    house.running(2)
    yield other
    other.close()


@pytest.fixture
def operator(console_database: str) -> Client:
    person = User.objects.create_user("ana")
    person.user_permissions.add(Permission.objects.get(codename="run_endpoint"))
    client = Client()
    client.force_login(person)
    return client


def minutes_pass(host: str) -> None:
    """Move the stored times back instead of waiting."""
    earlier = {name: F(name) - timedelta(minutes=5) for name in ("heartbeat_at", "started_at")}
    Process.objects.filter(host=host).update(**earlier)


def judged(watching: timedelta = timedelta(hours=1), **about: object) -> list[Alert]:
    """Open alerts on the host after the alerter has evaluated the real rows."""
    now = database_clock.now()
    Evaluation(look_at(now, now - watching, CursorReading([], [], ""), **about)).run()  # type: ignore[arg-type]
    return list(Alert.objects.filter(**GONE, resolved_at=None))


@contextmanager
def frozen(house: House) -> Iterator[None]:
    """Stop supervisor and children, as on a suspended machine, then continue them."""
    pids = [row.pid for row in Process.objects.filter(host=house.host, ended_at=None)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.chaos
def test_killed_host_warns_until_a_person_gives_it_up(house: House, other: House, operator: Client) -> None:
    other.close()  # kill -9: it records no end
    house.running(3)
    assert judged() == []
    minutes_pass("house-2")
    (alert,) = judged()
    last = Process.objects.get(host="house-2", role="supervisor").heartbeat_at
    assert (alert.severity, alert.opened_at) == ("warning", last)
    assert "1 process ran there: 1 of Sales. Other hosts have taken them over" in alert.meaning
    page = operator.get("/workers/").content.decode()
    assert "house-2 is gone for good" in page
    answer = operator.post("/workers/house-2/give-up/", follow=True).content.decode()
    assert "house-2 is given up" in answer
    assert answer.count("house-2") == 1, "it has left Workers"
    assert judged() == []
    assert AuditEntry.objects.values_list("who", "verb", "noun", "subject", "count").get() == (
        "ana", "give up", "host", "house-2", 2,
    )  # fmt: skip
    house.running(3)
    assert (
        "No supervisor of house-2 is missing"
        in operator.post("/workers/house-2/give-up/", follow=True).content.decode()
    )


def test_lost_host_that_no_other_replaces_is_critical(house: House, other: House) -> None:
    house.end()
    other.close()
    minutes_pass("house-2")
    (alert,) = judged()
    assert alert.severity == "critical"
    assert "No other supervisor is there to run anything" in alert.meaning


@pytest.mark.chaos
def test_lost_host_that_reports_again_is_back(house: House, other: House, operator: Client) -> None:
    with frozen(other):
        house.running(3)
        minutes_pass("house-2")
        assert judged()
        operator.post("/workers/house-2/give-up/")
        assert not Process.objects.filter(host="house-2", ended_at=None).exists()
    until(
        lambda: Process.objects.filter(host="house-2", ended_at=None, dismissed_at=None, state="running").count() == 2
    )
    assert judged() == []
    answer = operator.post("/workers/house-2/give-up/", follow=True).content.decode()
    assert "Nothing was changed. house-2 has been heard from again." in answer
    assert AuditEntry.objects.count() == 1


def test_host_that_ended_in_order_never_warns(house: House, other: House) -> None:
    other.end()
    house.running(3)
    minutes_pass("house-2")
    assert judged() == []


def test_an_outage_of_the_consoles_database_is_no_host_that_has_gone(house: House, other: House) -> None:
    """No heartbeat could be written: the alerter waits as for any silence, and open alerts stay open."""
    minutes_pass("house-2")
    other.close()
    minutes_pass("house-2")
    assert judged(answering_since=database_clock.now() - timedelta(seconds=50)) == []
    assert len(judged()) == 1
    assert len(judged(answering_since=database_clock.now())) == 1


def test_viewer_gives_up_no_host(house: House, other: House) -> None:
    other.close()
    minutes_pass("house-2")
    viewer = Client()
    viewer.force_login(User.objects.create_user("ivo"))
    said = viewer.post("/workers/house-2/give-up/", follow=True).content.decode()
    assert "Nothing was changed: needs the right" in said
    assert "not been heard from since" in said
