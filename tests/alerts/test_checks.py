"""``manage.py check`` reports what the page reports, in the same words."""

from io import StringIO
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.formatting.numbers import NBSP
from pgqueue_admin.models import Endpoint, MinimumTtbr, Queue
from tests.architecture.test_deployment import run


def ours(**options: Any) -> list[tuple[str, str]]:
    found = run_checks(**options)
    return [(each.id, f"{each.msg} {each.hint}") for each in found if each.id and each.id.startswith("pgqueue.W")]


def test_environment_and_mail(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ENVIRONMENT": ""}
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    found = dict(ours())
    assert "Set ENVIRONMENT" in found["pgqueue.W001"]
    assert "Set EMAIL_URL" in found["pgqueue.W002"]


def test_all_is_set(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ENVIRONMENT": "production", "ALERT_TO": ["ana@example.org"]}
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert ours() == []


def test_a_variable_by_its_old_name_does_nothing_and_is_named() -> None:
    said = run("manage.py", "check", SAMPLE_SECONDS="0.5", USUAL_ZONE="nonsense")
    assert said.returncode == 0
    assert "W012) SAMPLE_SECONDS is set and does nothing: it is PGQUEUE_SAMPLE_SECONDS now." in said.stderr
    assert "USUAL_ZONE is set and does nothing: it is PGQUEUE_BASELINE_TIME_ZONE now." in said.stderr


@pytest.mark.usefixtures("console_database")
def test_peek_settings_are_asked_only_with_the_database() -> None:  # T15, T16
    slow = Endpoint.objects.create(name="Warehouse", table="Warehouse", peek_delay_ms=12_000)
    queue = Queue.objects.create(schema="public", table="Warehouse", kind="input")
    MinimumTtbr.objects.create(
        queue=queue, message_type="Shop.StockHold", ttbr_ms=5_000, last_seen_at=queue.first_seen_at
    )
    assert [number for number, _ in ours() if number > "pgqueue.W002"] == []
    found = dict(ours(databases=["default"]))
    for fault in peek_delay_rules.faults(slow, queue.ttbrs.all()):
        number = {"peek_range": "pgqueue.W003", "ttbr_conflict": "pgqueue.W004"}[fault.kind]
        assert found[number] == f"Warehouse: {fault.sentence}".replace(NBSP, " ")


@pytest.mark.usefixtures("console_database")
def test_the_command_shows_them_and_does_not_fail() -> None:
    Endpoint.objects.create(name="Warehouse", table="Warehouse", peek_delay_ms=50)
    out = StringIO()
    call_command("check", databases=["default"], stderr=out)
    assert "pgqueue.W003" in out.getvalue()
