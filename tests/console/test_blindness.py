"""Unreadable is not healthy: what pages, the probe and the mail say while queues cannot be read, for real reasons."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.alerts.dead_message_cursor import CursorReading
from pgqueue_admin.alerts.evaluation import Evaluation
from pgqueue_admin.alerts.mail import policy
from pgqueue_admin.alerts.snapshot import look
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Alert, AlertMail, database_clock, readability
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.console.pages import Connect
from tests.console.sampled import elsewhere, signed_in
from tests.hostile import change_detector
from tests.monitor.tables import fill, make
from tests.waiting import until

QUEUES = ("Billing", "Orders", "Sales", "Shipping")


@pytest.fixture(autouse=True)
def quick(patience: None, settings: Settings) -> None:
    """With a 1 s interval, three samples are missed within 3 s."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SAMPLE_SECONDS": 1.0, "ALERT_TO": "oncall@example.org"}


@pytest.fixture
def owner(console_database: str, connect: Connect) -> Connection:
    made: Connection = connect(console_database)
    for name in QUEUES:
        fill(made, make(made, name))
    return made


@contextmanager
def sampler() -> Iterator[SamplerProcess]:
    sampling = SamplerProcess()
    sampling.run_once()
    try:
        yield sampling
    finally:
        sampling.close()


def looks_until_unread(sampling: SamplerProcess, number: int) -> None:
    def unread() -> bool:
        sampling.run_once()
        return readability.current().unread == number

    until(unread, what=f"{number} queues unread for three samples")


def alerted(since: datetime) -> dict[str, Alert]:
    """Let the alerter evaluate; return the open warnings by kind."""
    seen = look(database_clock.now(), since, CursorReading())
    with transaction.atomic():
        policy.write(seen, Evaluation(seen).run())
    return {alert.kind: alert for alert in Alert.objects.filter(resolved_at=None)}


def page(path: str) -> str:
    said: str = signed_in(f"looker{path.replace('/', '-')}").get(path).content.decode()
    return said.replace("\u00a0", " ")


def test_a_role_that_lost_select_on_all_is_blind(owner: Connection) -> None:
    began = database_clock.now()
    with (
        change_detector.nothing_but_select(owner, ["public"]) as reader,
        elsewhere("queues", **reader),
        sampler() as sampling,
    ):
        assert (readability.current().unread, Client().get("/readyz").json()["parts"]["queues"]) == (0, "ok")
        owner.run(f"revoke select on {', '.join(f'{chr(34)}{name}{chr(34)}' for name in QUEUES)} from {reader['USER']}")
        looks_until_unread(sampling, len(QUEUES))
        overview, queues = page("/"), page("/queues/")
        probe, needed = Client().get("/readyz"), Client().get("/readyz?for=web")
        warnings = alerted(began)
        again = alerted(began)
    assert "The console cannot see: 4 of 4 queues cannot be read since" in overview
    assert "Nothing is broken" not in overview
    assert "4 not read, 0 within target" in queues
    assert (probe.status_code, probe.json()["parts"]["queues"]) == (503, "4 of 4 cannot be read")
    assert (needed.status_code, needed.json()["parts"]) == (200, {"console database": "ok"})
    assert "queue_unreadable" not in warnings
    blind = warnings["blind"]
    assert (blind.severity, blind.value) == ("critical", "4 of 4")
    assert blind.meaning.endswith("permission denied for table Billing. Grant SELECT to the role of QUEUES_URL.")
    assert "sampler_stale" not in again
    (mail,) = AlertMail.objects.filter(alert=blind)
    assert mail.subject.startswith("[demo] critical: queues not read 4 of 4, limit half of them, since ")
    assert "deaths" not in mail.text


def test_single_locked_queue_is_unread_and_the_console_is_not_blind(
    owner: Connection, console_database: str, connect: Connect
) -> None:
    began, holder = database_clock.now(), connect(console_database)
    with sampler() as sampling, holder.transaction():
        holder.run('lock table "Orders" in access exclusive mode')
        looks_until_unread(sampling, 1)
        overview, queues, probe = page("/"), page("/queues/"), Client().get("/readyz")

        def warned() -> dict[str, Alert]:
            sampling.run_once()
            found = alerted(began)
            return found if "queue_unreadable" in found else {}

        warnings = until(warned, what="three samples of the others")
    assert "One queue is not read" in overview
    assert "3 queues are within target; 1 not read." in overview
    assert "1 not read, 3 within target" in queues
    assert probe.json()["parts"]["queues"] == "ok"
    assert "blind" not in warnings
    said = warnings["queue_unreadable"].meaning
    assert said.endswith("See in pg_locks who holds the lock.")
    assert "SELECT" not in said


@pytest.mark.parametrize(("unread", "of", "is_blind"), [(2, 4, False), (3, 4, True), (2, 5, False), (3, 5, True)])
def test_half_of_them_is_not_blind_and_one_more_is(unread: int, of: int, is_blind: bool) -> None:
    now = datetime.now(UTC)
    late = now - timedelta(seconds=10)  # three samples missed
    looks = [SimpleNamespace(at=late, error="no", sqlstate="42501") for _ in range(unread)]
    read = [SimpleNamespace(at=now, error="", sqlstate="") for _ in range(of - unread)]
    assert readability.of([*looks, *read], now).is_blind is is_blind
    missed_two = [SimpleNamespace(at=now - timedelta(seconds=2), error="no", sqlstate="42501") for _ in looks]
    assert not readability.of([*missed_two, *read], now).is_blind


def test_the_only_queue_that_somebody_locks_blinds_nobody_and_three_do(
    owner: Connection, console_database: str, connect: Connect
) -> None:
    owner.run('drop table "Orders", "Sales", "Shipping"')
    holder = connect(console_database)
    with sampler() as sampling, holder.transaction():
        holder.run('lock table "Billing" in access exclusive mode')
        looks_until_unread(sampling, 1)
        assert not readability.current().is_blind
    for name in ("Orders", "Sales", "Shipping"):
        make(owner, name)
    with sampler() as sampling, holder.transaction():
        holder.run('lock table "Billing", "Orders", "Sales" in access exclusive mode')
        looks_until_unread(sampling, 3)
        assert readability.current().is_blind
    with sampler():
        assert readability.current().unread == 0
