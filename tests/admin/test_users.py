"""A user manager cannot grant rights or take over accounts beyond their own; staff without rights see nothing."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from pgqueue_admin.models import AuditEntry
from tests.admin.conftest import SignIn
from tests.archived_messages import person

CHANGER = ("add_user", "change_user", "delete_user", "add_group", "change_group", "delete_group", "retry_message")
USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"
NEW = "correct horse battery"


def number(codename: str) -> int:
    return Permission.objects.get(codename=codename).pk


def codenames(holder: Any) -> set[str]:
    return {each.codename for each in holder.all()}


def change(client: Client, user: User, **said: Any) -> int:
    about = {"username": user.username, "is_active": "on", "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}
    return client.post(f"{USERS}{user.pk}/change/", {**about, **said}).status_code


@pytest.fixture
def changer(sign_in: SignIn) -> Client:
    return sign_in("carla", CHANGER)


@pytest.mark.parametrize("who", ["carla", "ivo"])
def test_non_superuser_grants_no_superuser_flag(changer: Client, who: str) -> None:
    person("ivo")
    before = User.objects.get(username=who)
    change(changer, before, is_superuser="on", is_staff="on")
    after = User.objects.get(username=who)
    assert (after.is_superuser, after.is_staff) == (False, True)


def test_rights_are_given_from_ones_own(changer: Client) -> None:
    ivo = person("ivo")
    assert change(changer, ivo, user_permissions=[number("retry_message")]) == 302
    assert codenames(ivo.user_permissions) == {"retry_message"}
    assert change(changer, ivo, user_permissions=[number("retry_message"), number("run_endpoint")]) == 200
    assert codenames(ivo.user_permissions) == {"retry_message"}


def test_group_grants_no_right_beyond_the_changers_own(changer: Client) -> None:
    ivo, runners, menders = person("ivo"), Group.objects.create(name="runners"), Group.objects.create(name="menders")
    runners.permissions.add(number("retry_message"), number("run_endpoint"))
    menders.permissions.add(number("retry_message"))
    assert change(changer, ivo, groups=[runners.pk]) == 200
    assert change(changer, ivo, groups=[menders.pk]) == 302
    assert list(ivo.groups.all()) == [menders]

    both = {"name": "menders", "permissions": [number("retry_message"), number("run_endpoint")]}
    assert changer.post(f"{GROUPS}{menders.pk}/change/", both).status_code == 200
    assert changer.post(f"{GROUPS}add/", {**both, "name": "more"}).status_code == 200
    assert changer.post(f"{GROUPS}{runners.pk}/change/", {"name": "mine"}).status_code == 403
    assert changer.post(f"{GROUPS}{runners.pk}/delete/", {"post": "yes"}).status_code == 403
    assert {each.name: codenames(each.permissions) for each in Group.objects.all()} == {
        "runners": {"retry_message", "run_endpoint"},
        "menders": {"retry_message"},
    }


@pytest.mark.parametrize("more", [{"is_superuser": True}, {"is_superuser": True, "is_active": False}, {}])
def test_user_with_more_rights_cannot_be_changed_or_deleted(changer: Client, more: dict[str, bool]) -> None:
    other = person("otto", "run_endpoint", **{"is_active": False, **more})
    password = {"password1": NEW, "password2": NEW}
    assert changer.post(f"{USERS}{other.pk}/password/", password).status_code == 403
    assert change(changer, other, email="carla@example.org", is_active="on") == 403
    assert changer.post(f"{USERS}{other.pk}/delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes"}
    assert changer.post(USERS, chosen).status_code == 403
    after = User.objects.get(username="otto")
    assert after.check_password("secret")
    assert (after.is_active, after.email) == (other.is_active, "")


def test_user_with_no_more_rights_can_be_changed_and_deleted(changer: Client) -> None:
    ivo = person("ivo", "retry_message")
    assert changer.post(f"{USERS}{ivo.pk}/password/", {"password1": NEW, "password2": NEW}).status_code == 302
    assert User.objects.get(pk=ivo.pk).check_password(NEW)
    assert changer.post(f"{USERS}{ivo.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=ivo.pk).exists()


def test_a_superuser_gives_everything(sign_in: SignIn) -> None:
    root, ivo = sign_in("root", (), is_superuser=True), person("ivo")
    given = {"is_superuser": "on", "user_permissions": [number("run_endpoint")]}
    assert change(root, ivo, **given) == 302
    ivo.refresh_from_db()
    assert ivo.is_superuser
    assert codenames(ivo.user_permissions) == {"run_endpoint"}


def test_passwords_have_twelve_characters_and_are_not_the_name(changer: Client) -> None:
    ivo = person("ivoandric1961")
    for bad, why in (("elevenchars", "at least 12 characters"), ("ivoandric1961", "too similar to the username")):
        page = changer.post(f"{USERS}{ivo.pk}/password/", {"password1": bad, "password2": bad})
        assert why in page.content.decode()
    assert User.objects.get(pk=ivo.pk).check_password("secret")


def test_staff_without_rights_sees_nothing(sign_in: SignIn) -> None:
    AuditEntry.objects.create(who="ana", verb="set", noun="queue", subject="x", origin="console")
    bare = sign_in("bare", ())
    index = bare.get("/admin/")
    assert index.context["available_apps"] == []
    for noun in ("archivedmessage", "operation", "auditentry", "endpoint"):
        assert bare.get(f"/admin/pgqueue/{noun}/").status_code == 403
    for noun in ("django_celery_beat/periodictask", "django_celery_results/taskresult", "auth/user", "auth/group"):
        assert bare.get(f"/admin/{noun}/").status_code == 403


def test_view_right_of_one_model_shows_that_model_only(sign_in: SignIn) -> None:
    auditor = sign_in("auditor", ("view_auditentry",))
    assert auditor.get("/admin/pgqueue/auditentry/").status_code == 200
    assert auditor.get("/admin/pgqueue/archivedmessage/").status_code == 403
    assert sign_in("ana").get("/admin/pgqueue/auditentry/").status_code == 200
