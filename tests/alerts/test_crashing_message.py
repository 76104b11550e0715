"""A message that crashes its process is warned of and mailed at the third crash, until it leaves its queue."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Alert, AlertMail, InFlightAtCrash
from tests.crashing_messages import crashing_message


@pytest.fixture
def session(console_database: str, settings: Any) -> Any:
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"], "ENVIRONMENT": "production"}
    with postgresql().connect(console_database, for_handlers=True) as connection:
        yield connection


def test_two_deaths_are_an_accident(session: Connection, console_database: str) -> None:
    crashing_message(session, console_database, deaths=2)
    Alerter().run_once()
    assert not Alert.objects.filter(kind="crashing_message").exists()


def test_the_third_is_warned_of_and_mailed_until_it_is_gone(session: Connection, console_database: str) -> None:
    row = crashing_message(session, console_database)
    alerter = Alerter()
    alerter.run_once()
    alert = Alert.objects.get(kind="crashing_message")
    assert (alert.severity, alert.queue, alert.subject) == ("critical", '"public"."Sales"', str(row.id))
    assert alert.sentence.startswith(
        f"Deadly, seq {row.seq:,}, was in flight at 3 deaths of a process, alone in flight"
    )
    mail = AlertMail.objects.get(alert=alert)
    assert mail.subject.startswith("[production] critical: Sales crashing message 3 deaths, limit 2, since ")
    assert f"/crashing-messages/{row.id}/" in mail.text
    session.run('delete from "Sales"')
    alerter.run_once()
    alert.refresh_from_db()
    assert alert.resolved_at is not None
    assert not InFlightAtCrash.objects.filter(resolved_at=None).exists()
    assert AlertMail.objects.filter(alert=alert, about="resolved").exists()


def test_more_deaths_are_counted_on_in_the_same_warning(session: Connection, console_database: str) -> None:
    row = crashing_message(session, console_database)
    alerter = Alerter()
    alerter.run_once()
    now = datetime.now(UTC)
    last = InFlightAtCrash.objects.order_by("-died_at")[0]
    last.pk, last.pid, last.died_at, last.others_in_flight = None, 999, now, 2
    last.save()
    alerter.run_once()
    alert = Alert.objects.get(kind="crashing_message")
    assert (alert.count, alert.value) == (4, "4 deaths")
    assert "alone in flight at 3 of them" in alert.sentence
    assert str(row.id) == alert.subject


def test_while_the_queues_do_not_answer_it_stays(session: Connection, console_database: str, settings: Any) -> None:
    crashing_message(session, console_database)
    alerter = Alerter()
    alerter.run_once()
    session.run('alter table "Sales" rename to "Elsewhere"')
    session.run("create view \"Sales\" as select 1/0 as id, 1 as seq, '' as headers")
    alerter.run_once()
    assert Alert.objects.get(kind="crashing_message").resolved_at is None
