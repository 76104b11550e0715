"""``/me/``: each right and what grants it, this browser's choices, and one's own latest acts."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from pgqueue_admin.console.account import rights
from pgqueue_admin.models import AuditEntry, Operation, database_role
from tests.console.sampled import read_only
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("console_database")


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana", password="x")


def give(to: Any, codename: str) -> None:
    (to.permissions if isinstance(to, Group) else to.user_permissions).add(Permission.objects.get(codename=codename))


def given(person: User) -> dict[str, str]:
    return {row.name: row.given for row in rights.rows(User.objects.get(pk=person.pk))}


def test_each_right_says_who_gives_it(ana: User) -> None:
    night = Group.objects.create(name="night <shift>")
    give(night, "retry_message")
    give(ana, "retry_message")
    give(ana, "change_schedule")
    ana.groups.add(night)
    found = given(ana)
    assert found["Can retry dead messages"] == "to you, by the group night <shift>"
    assert found["Can change schedules and send their messages"] == "to you"
    assert [name for name, said in found.items() if not said] == [
        "Can discard and restore dead messages",
        "Can start, stop, scale and pause endpoints",
        "Can change peek settings and targets",
        "Can read message bodies and headers' values",
        "Can reveal masked parts of messages, and change what is masked",
    ]


def test_listed_rights_are_those_the_server_checks(ana: User) -> None:
    give(ana, "run_endpoint")
    person = User.objects.get(pk=ana.pk)
    said = {codename: bool(given(person)[name]) for codename, name in Operation._meta.permissions}
    assert said == {codename: person.has_perm(f"pgqueue.{codename}") for codename in said}
    assert said == {codename: codename == "run_endpoint" for codename in rights.ALLOWS}


def test_the_page(ana: User, client: Client) -> None:
    client.force_login(ana)
    page = client.get("/me/").content.decode()
    assert "Nothing yet" in page
    assert len(re.findall("may not; an administrator gives it", page)) == 7
    AuditEntry.objects.create(who="ana", verb="pause", noun="endpoint", subject="Billing", origin="console")
    AuditEntry.objects.create(who="tomas", verb="pause", noun="endpoint", subject="Sales", origin="console")
    page = client.get("/me/").content.decode()
    assert "paused Billing" in page
    assert "paused Sales" not in page
    assert 'href="/audit/?q=who%3A%22ana%22"' in page


def test_superuser_has_every_right_but_the_database_role_limits_acts(
    ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_role, "FRESH_SECONDS", 0)
    User.objects.filter(pk=ana.pk).update(is_superuser=True)
    assert set(given(ana).values()) == {"as a superuser"}
    with read_only("default"):
        until(lambda: (role := database_role.current()) and role.refusal, what="the database was asked")
        held = {row.name for row in rights.rows(User.objects.get(pk=ana.pk)) if row.held_back}
    assert held == {
        "Can retry dead messages",
        "Can discard and restore dead messages",
        "Can change schedules and send their messages",
    }
