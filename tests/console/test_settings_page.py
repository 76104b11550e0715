"""Settings: where each is decided, and targets of queues with their undo."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.console.settings import inventory
from pgqueue_admin.models import AuditEntry, Queue
from pgqueue_admin.services import queues
from tests.architecture.test_deploy_variables import DOCUMENTED
from tests.console.pages import matched, shown

PAGE = "/settings/queues/public/Billing/"
ERROR = "/settings/queues/public/error/"


@pytest.fixture
def billing(console_database: str) -> Queue:
    return Queue.objects.create(schema="public", table="Billing", kind="input", target_age_seconds=60, target_dead=0)


@pytest.fixture
def error(console_database: str) -> Queue:
    return Queue.objects.create(schema="public", table="error", kind="error")


def test_each_setting_names_who_decides_it(
    as_operator: Client, billing: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGQUEUE_QUEUE_SCHEMAS", "public")
    html = shown(as_operator, "/settings/")
    assert "environment: PGQUEUE_QUEUE_SCHEMAS" in html
    assert "default; set PGQUEUE_ALERT_TO to change it" in html
    assert "1 min" in html


NOT_SHOWN = {
    *("PGQUEUE_BIND", "PORT", "ALLOWED_HOSTS", "DEBUG"),  # of this server: a reader of the page has reached it
    *("SECRET_KEY", "CELERY_BROKER_URL", "PGQUEUE_OUTBOX_URL_"),  # secrets, or next to one
    *("PGQUEUE_HOST", "PGQUEUE_CODE_VERSION"),  # of each process: on Workers
    *("PGQUEUE_PG_BIN", "PGQUEUE_INSTALL_HISTORY", "JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"),  # of each machine
}


def test_every_documented_variable_is_shown_or_is_none_of_the_page() -> None:
    shown_there = {row[1] for _, rows in inventory._GROUPS for row in rows} - {""}
    assert shown_there | NOT_SHOWN == DOCUMENTED
    assert not shown_there & NOT_SHOWN


def test_history_settings_are_shown(
    as_operator: Client, console_database: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_MASTER", "")
    given = {
        "MASKED_HEADERS": ["Customer", "Card"],
        "ARCHIVE_RETENTION_DAYS": 30,
        "HISTORY_URL": "postgresql://me:secret@far/db",
    }
    settings.PGQUEUE = {**settings.PGQUEUE, **given}
    html = shown(as_operator, "/settings/").replace("\N{NO-BREAK SPACE}", " ")
    for said in ("Customer, Card", "30 days", "for ever", "me@far/db", "environment: SPARK_MASTER"):
        assert said in html
    assert "secret" not in html


def test_no_password_is_shown(as_operator: Client, console_database: str) -> None:
    from urllib.parse import urlsplit

    html = shown(as_operator, "/settings/")
    password = urlsplit(console_database).password
    assert password is not None
    assert password not in html


def test_a_target_is_changed_said_audited_and_taken_back(as_operator: Client, billing: Queue) -> None:
    given = {"target_age_seconds": "5 min", "target_depth": "1000", "target_dead": "", "reason": "night shift"}
    response = as_operator.post(PAGE, given)
    assert response.status_code == 303
    billing.refresh_from_db()
    assert (billing.target_age_seconds, billing.target_depth, billing.target_dead) == (300, 1000, None)
    html = shown(as_operator, response["Location"])
    assert "target for the oldest message 1 min → 5 min" in html
    assert "night shift" in html
    undo = matched(rf'action="({PAGE}undo/\d+/)"', html)
    as_operator.post(undo, {"next": PAGE})
    billing.refresh_from_db()
    assert (billing.target_age_seconds, billing.target_depth, billing.target_dead) == (60, None, 0)
    assert [entry.verb for entry in AuditEntry.objects.all()] == ["undo", "set"]


def test_a_refused_form_keeps_its_reason_and_opens_at_what_is_wrong(as_operator: Client, billing: Queue) -> None:
    response = as_operator.post(PAGE, {"target_age_seconds": "5 min", "target_depth": "many", "reason": "night shift"})
    assert response.status_code == 422
    html = response.content.decode()
    assert 'value="night shift"' in html
    assert matched(r'<input id="([a-z_]+)"[^>]*? aria-invalid="true" autofocus', html) == "id_target_depth"


def test_a_queues_page_says_who_changed_a_target(as_operator: Client, billing: Queue) -> None:
    as_operator.post(PAGE, {"target_age_seconds": "5 min", "target_depth": "", "target_dead": "0"})
    rows = re.findall(r'data-l="Last change">(.*?)</td>', shown(as_operator, "/queues/public/Billing/"), re.DOTALL)
    said = [" ".join(re.sub(r"<[^>]+>", "", each).split()) for each in rows]
    assert said[0].startswith("ana, ")
    assert said[1:] == ["default", "default"]


def test_undo_is_refused_after_a_later_change(as_operator: Client, billing: Queue) -> None:
    as_operator.post(PAGE, {"target_age_seconds": "5 min", "target_depth": "", "target_dead": "0"})
    undo = f"{PAGE}undo/{AuditEntry.objects.get().pk}/"
    as_operator.post(PAGE, {"target_age_seconds": "9 min", "target_depth": "", "target_dead": "0"})
    response = as_operator.post(undo)
    assert "Nothing was changed. ana changed Billing since." in shown(as_operator, response["Location"])
    billing.refresh_from_db()
    assert billing.target_age_seconds == 540


def test_a_change_of_another_queue_is_not_taken_back_under_this_name(as_operator: Client, billing: Queue) -> None:
    other = Queue.objects.create(schema="public", table="Other", kind="input")
    queues.save_settings(other, {"target_depth": 7}, "tomas", "console")
    as_operator.post(f"{PAGE}undo/{AuditEntry.objects.get().pk}/")
    other.refresh_from_db()
    assert other.target_depth == 7


@pytest.mark.parametrize(
    ("field", "typed"), [("target_age_seconds", "later"), ("target_depth", "-1"), ("target_dead", "99999999999")]
)
def test_invalid_target_is_refused(as_operator: Client, billing: Queue, field: str, typed: str) -> None:
    given = {"target_age_seconds": "1 min", "target_depth": "", "target_dead": "", field: typed}
    response = as_operator.post(PAGE, given)
    assert response.status_code == 422
    assert 'class="err"' in response.content.decode()
    assert not AuditEntry.objects.exists()


def test_ingestion_is_for_error_queues_with_a_plain_warning(as_operator: Client, billing: Queue, error: Queue) -> None:
    html = shown(as_operator, ERROR)
    assert "ServiceControl" in html
    as_operator.post(ERROR, {"ingest": "on"})
    error.refresh_from_db()
    assert error.ingest
    assert "ServiceControl" not in shown(as_operator, PAGE)
    as_operator.post(PAGE, {"ingest": "on"})
    billing.refresh_from_db()
    assert not billing.ingest


def opened(client: Client, path: str) -> dict[str, str]:
    """The form as a browser posts it untouched."""
    page = shown(client, path)
    inputs = re.findall(r'<input[^>]* name="(version|target_\w+|ingest)"([^>]*)>', page)
    boxes = [name for name, rest in inputs if name != "ingest" or " checked" in rest]
    return {name: "on" if name == "ingest" else value_of(name, page) for name in boxes}


def value_of(name: str, page: str) -> str:
    return matched(rf'name="{name}" value="([^"]*)"', page)


def test_of_two_forms_the_second_is_refused_and_shows_what_the_first_did(as_operator: Client, error: Queue) -> None:
    queues.save_settings(error, {"ingest": True}, "tomas", "console")
    mine, bobs = opened(as_operator, ERROR), opened(as_operator, ERROR)
    del bobs["ingest"]
    bob = Client()
    bob.force_login(User.objects.create_superuser("bob"))
    bob.post(ERROR, bobs)
    response = as_operator.post(ERROR, {**mine, "target_dead": "5"})
    said = shown(as_operator, response["Location"])
    refusal = (
        r"Nothing was changed\. bob changed error at [\d:]+ UTC, after you opened it: moved into the archive on → off\."
    )
    assert re.search(refusal, said)
    error.refresh_from_db()
    assert (error.ingest, error.target_dead) == (False, None)
    as_operator.post(ERROR, {**opened(as_operator, ERROR), "target_dead": "5"})
    error.refresh_from_db()
    assert (error.ingest, error.target_dead) == (False, 5)


def test_a_form_that_came_back_with_a_fault_still_knows_what_was_read(as_operator: Client, error: Queue) -> None:
    read = opened(as_operator, ERROR)
    queues.save_settings(error, {"target_depth": 7}, "tomas", "console")
    faulty = as_operator.post(ERROR, {**read, "target_dead": "many"})
    assert faulty.status_code == 422
    assert value_of("version", faulty.content.decode()) == read["version"]
    as_operator.post(ERROR, {**read, "target_dead": "5"})
    error.refresh_from_db()
    assert (error.target_depth, error.target_dead) == (7, None)


def test_form_is_refused_after_an_undo_since_it_was_read(as_operator: Client, billing: Queue) -> None:
    queues.save_settings(billing, {"target_depth": 7}, "tomas", "console")
    read = opened(as_operator, PAGE)
    queues.undo(billing, AuditEntry.objects.get().pk, "tomas", "console")
    as_operator.post(PAGE, {**read, "target_dead": "5"})
    billing.refresh_from_db()
    assert (billing.target_depth, billing.target_dead) == (None, 0)


def test_a_viewer_looks(as_viewer: Client, billing: Queue) -> None:
    assert (
        "needs the right “Can change peek settings and targets”, which an administrator gives in Django admin"
        in shown(as_viewer, PAGE)
    )
    response = as_viewer.post(PAGE, {"target_depth": "5"})
    assert (
        "needs the right “Can change peek settings and targets”, which an administrator gives in Django admin"
        in shown(as_viewer, response["Location"])
    )
    assert not AuditEntry.objects.exists()


def test_an_unknown_queue_is_no_error(as_operator: Client, console_database: str) -> None:
    assert as_operator.get("/settings/queues/public/Nowhere/").status_code == 404
