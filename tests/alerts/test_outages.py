"""The alerter while a database is down, and while one kind of warning cannot be evaluated or written."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Alert, AlertMail, Endpoint, MinimumTtbr, Queue, database_clock
from pgqueue_admin.models.queue_database import close
from tests.console.sampled import elsewhere, read_only
from tests.hostile.proxy import Proxy
from tests.waiting import until

Die = Callable[..., None]
KILL_EARS = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'pgqueue-admin alerter' and datname = current_database()
"""


@pytest.fixture(autouse=True)
def _somebody_is_mailed(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"]}


def test_a_console_database_that_is_away_costs_a_turn_and_one_line(
    console_database: str, die: Die, caplog: pytest.LogCaptureFixture
) -> None:
    alerter, console = Alerter(), connections["default"]
    alerter.run_once()
    port = console.settings_dict["PORT"]
    console.close()
    console.settings_dict["PORT"] = 1
    try:
        alerter.run_once()
        alerter.run_once()
    finally:
        console.settings_dict["PORT"] = port
    assert caplog.text.count("The console's database does not answer") == 1
    die(1)
    alerter.run_once()
    assert AlertMail.objects.count() == 1


def test_a_console_database_that_takes_no_writes_is_said_to_be_that(
    console_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also after another error: the reason that its sessions ended is not the reason that no turn completes."""
    alerter = Alerter()
    with elsewhere("default", PORT=1):
        alerter.run_once()
    with read_only("default"):
        alerter.run_once()
        alerter.run_once()
    assert caplog.text.count("The console's database takes no writes now") == 1
    assert "read-only transaction" in caplog.text


def test_a_queue_database_that_is_away_is_a_warning_and_loses_nothing(console_database: str, die: Die) -> None:
    alerter, queues = Alerter(), connections["queues"]
    alerter.run_once()
    port = queues.settings_dict["PORT"]
    queues.settings_dict["PORT"] = 1
    die(2)
    try:
        alerter.run_once()
    finally:
        queues.settings_dict["PORT"] = port
    assert Alert.objects.get(kind="archive_unreadable").resolved_at is None
    close()
    alerter.run_once()
    assert Alert.objects.get(kind="archive_unreadable").resolved_at
    assert Alert.objects.get(kind="dead_message").count == 2
    assert AlertMail.objects.count() == 1


def test_ears_that_were_cut_off_grow_again(
    console_database: str, die: Die, connect: Callable[[str], Connection]
) -> None:
    alerter = Alerter(every=0.1)
    alerter._open_ears()
    assert connect(console_database).value(f"select count(*) from ({KILL_EARS}) killed") == 1

    def deaf() -> bool:
        alerter._wait()
        return alerter._ears is None

    until(deaf, what="the end of the session to be noticed")
    alerter._open_ears()
    die(1)
    until(alerter._hears, what="a death to be announced to them")
    alerter._close_ears()


def test_a_pooler_that_has_no_session_to_lend_costs_no_turn(
    console_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It accepts connections and never serves them: deaths are not heard, and the unread archive is a warning."""
    alerter, pooler = Alerter(every=0.1), Proxy(console_database)

    def run() -> None:
        alerter.run()
        connections.close_all()

    with pooler.holding(), elsewhere("queues", PORT=pooler.port):
        running = threading.Thread(target=run, daemon=True)
        running.start()
        until(Alert.objects.filter(kind="archive_unreadable").exists, what="a turn")
        alerter.stop()
        running.join()
    (told,) = (line for line in caplog.messages if line.startswith("Not listening for dead messages"))
    assert "a pooler may have none left" in told


def test_a_long_type_name_costs_no_warning_and_no_mail(console_database: str, die: Die) -> None:
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", peek_delay_ms=9_000)
    queue = Queue.objects.create(schema="public", table="Billing", kind="input")
    kind = "Shop." + "Long" * 120
    MinimumTtbr.objects.create(queue=queue, message_type=kind, ttbr_ms=2_000, last_seen_at=database_clock.now())
    alerter = Alerter()
    alerter.run_once()
    die(1)
    alerter.run_once()
    assert Alert.objects.get(kind="dead_message").count == 1
    assert AlertMail.objects.count() == 1
    assert Alert.objects.get(kind="ttbr_conflict").cause == kind[:400]  # still the same warning, and open only once


def test_failing_kind_is_logged_once_and_others_go_on(
    console_database: str, die: Die, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", peek_delay_ms=12_000)
    alerter = Alerter()
    alerter.run_once()
    monkeypatch.setattr(peek_delay_rules, "out_of_range", lambda endpoint: 1 / 0)
    die(1)
    alerter.run_once()
    alerter.run_once()
    assert AlertMail.objects.count() == 1
    assert Alert.objects.get(kind="peek_range").resolved_at is None  # unknown: it stays as it was
    assert caplog.text.count("The warning peek_range cannot be judged") == 1
    assert "does not answer" not in caplog.text


def test_write_refused_by_the_console_database_is_no_outage(
    console_database: str, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ENVIRONMENT": ""}
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", peek_delay_ms=12_000)
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "alter table pgqueue_console.pgqueue_alert add constraint no_such_kind check (kind <> 'peek_range')"
        )
    Alerter().run_once()
    assert "The warning peek_range cannot be judged" in caplog.text
    assert "does not answer" not in caplog.text
    assert Alert.objects.filter(kind="unnamed_environment").exists()
