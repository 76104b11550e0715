"""Schedules in Django admin show the engine's table, with the console's acts."""

from collections.abc import Callable

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import schedules
from pgqueue_admin.services.schedules import Act, ScheduleDraft
from tests.archived_messages import person
from tests.older_schema import set_back

LIST = "/admin/pgqueue/schedule/"
DRAFT = ScheduleDraft("Nightly", schedules.LEASE, "", "{}", "30 2 * * *", "Europe/Vienna", "skip")


@pytest.fixture
def engine(console_database: str, connect: Callable[..., Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def root(console_database: str) -> Client:
    client = Client()
    client.force_login(person("root", is_staff=True, is_superuser=True))
    return client


def test_schedule_is_listed_shown_paused_and_resumed(engine: Connection, root: Client) -> None:
    schedule = schedules.add(DRAFT, Act("ana", "command"))
    assert "30 2 * * *" in root.get(LIST).content.decode()
    page = root.get(f"{LIST}{schedule}/change/").content.decode()
    assert f'<a href="/schedules/{schedule}/">Open in the console</a>' in page
    for act, paused in (("pause", True), ("resume", False)):
        said = root.post(LIST, {"action": act, "_selected_action": [schedule]}, follow=True).content.decode()
        assert f"1 schedule {act}d." in said
        assert bool(engine.value("select paused_at from messages.schedule")) is paused
    found = list(AuditEntry.objects.order_by("id").values_list("verb", "origin"))[1:]
    assert found == [("pause", "admin"), ("resume", "admin")]


def test_schedules_cannot_be_added_changed_or_deleted_in_admin(engine: Connection, root: Client) -> None:
    schedule = schedules.add(DRAFT, Act("ana", "command"))
    assert root.get(f"{LIST}add/").status_code == 403
    assert root.post(f"{LIST}{schedule}/delete/", {"post": "yes"}).status_code == 403
    assert root.post(f"{LIST}{schedule}/change/", {"name": "mine"}).status_code == 403


def test_without_the_tables_it_names_the_command(engine: Connection, root: Client) -> None:
    set_back(engine, 4)
    for url in (LIST, f"{LIST}5/change/"):
        page = root.get(url)
        assert (page.status_code, "manage.py engine_schema" in page.content.decode()) == (200, True)
