"""With no ready message within reach behind in-flight or expired ones, the age is unknown, not within target."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from pgqueue_admin.alerts.evaluation import AlertChanges, Evaluation
from pgqueue_admin.alerts.mail import metrics
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Alert, LatestSample, Queue, database_clock
from tests.console.sampled import sample
from tests.monitor.tables import fill, make, out_of_sight

Connect = Callable[..., Connection]


@pytest.fixture
def queues(console_database: str, connect: Connect, settings: Any) -> Connection:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 1_000}
    return connect(console_database)


def look() -> AlertSnapshot:
    now = database_clock.now()
    return AlertSnapshot(now=now, watching_since=now, queues=list(Queue.objects.select_related("latest")))


def evaluate() -> AlertChanges:
    """Evaluate one minute after the open warnings were last seen."""
    Alert.objects.update(last_seen_at=F("last_seen_at") - timedelta(minutes=1))
    return Evaluation(look()).run()


def kinds(alerts: list[Alert]) -> list[str]:
    return [alert.kind for alert in alerts if alert.queue]


def test_a_warning_stays_while_the_age_is_unknown(queues: Connection) -> None:
    address = make(queues)
    fill(queues, address)
    sample()
    LatestSample.objects.update(oldest_at=F("oldest_at") - timedelta(minutes=10))
    assert kinds(evaluate().opened) == ["queue_age"]
    queues.run('delete from "Q"')
    out_of_sight(queues, address)
    sample()
    latest = LatestSample.objects.get()
    assert (latest.ready or 0) > 1_500
    assert latest.oldest_at is None
    assert kinds(evaluate().resolved) == []
    alert = Alert.objects.get(kind="queue_age")
    assert "unknown" in [line.now for line in metrics.of(look(), alert)]
    queues.run('delete from "Q" where expires is not null')
    sample()
    LatestSample.objects.update(oldest_at=F("at"))
    assert kinds(evaluate().resolved) == ["queue_age"]


def test_an_unknown_age_opens_no_warning(queues: Connection) -> None:
    out_of_sight(queues, make(queues))
    sample()
    assert "queue_age" not in kinds(evaluate().opened)


def opened(queues: Connection) -> None:
    """An open age warning of a queue whose age is now unknown."""
    out_of_sight(queues, make(queues))
    sample()
    alert = Alert(kind="queue_age", subject='"public"."Q"', queue='"public"."Q"', severity="critical")
    alert.opened_at = alert.last_seen_at = database_clock.now()
    alert.save()
    assert kinds(evaluate().resolved) == []


def test_age_warning_resolves_without_a_target(queues: Connection) -> None:
    opened(queues)
    Queue.objects.update(target_age_seconds=None)
    assert kinds(evaluate().resolved) == ["queue_age"]


def test_age_warning_resolves_when_its_queue_is_dropped(queues: Connection) -> None:
    opened(queues)
    queues.run('drop table "Q"')
    make(queues, "Other")
    sample()
    assert kinds(evaluate().resolved) == ["queue_age"]
