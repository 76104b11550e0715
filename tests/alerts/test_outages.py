"""The alerter while a database is away, and after."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.records.models import Alert, AlertMail
from pgqueue_admin.records.source import close
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
    alerter.turn()
    port = console.settings_dict["PORT"]
    console.close()
    console.settings_dict["PORT"] = 1
    try:
        alerter.turn()
        alerter.turn()
    finally:
        console.settings_dict["PORT"] = port
    assert caplog.text.count("The console's database does not answer") == 1
    die(1)
    alerter.turn()
    assert AlertMail.objects.count() == 1


def test_a_queue_database_that_is_away_is_a_warning_and_loses_nothing(console_database: str, die: Die) -> None:
    alerter, queues = Alerter(), connections["queues"]
    alerter.turn()
    port = queues.settings_dict["PORT"]
    queues.settings_dict["PORT"] = 1
    die(2)
    try:
        alerter.turn()
    finally:
        queues.settings_dict["PORT"] = port
    assert Alert.objects.get(kind="archive_unreadable").resolved_at is None
    close()
    alerter.turn()
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
