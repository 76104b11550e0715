"""Signing in: guessing is slowed down, strangers lock nobody out for long, and attempts are audited."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.test import Client

from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import AuditEntry, FailedSignIn, database_clock
from pgqueue_admin.services import login_throttle

WAIT = r"You are not signed in: too many passwords were wrong\. Try again in \d+\s\S+, at \d\d:\d\d:\d\d"
HERE, THERE = "192.0.2.1", "192.0.2.2"


def sign_in(name: str, password: str, address: str = HERE, browser: Client | None = None) -> Any:
    asked = {"username": name, "password": password}
    return (browser or Client()).post("/sign-in/", asked, REMOTE_ADDR=address)


def guess(name: str, times: int = login_throttle.FREE, address: str = HERE, browser: Client | None = None) -> list[int]:
    return [sign_in(name, f"wrong {number}", address, browser).status_code for number in range(times)]


def older(minutes: float) -> None:
    for row in FailedSignIn.objects.all():
        FailedSignIn.objects.filter(pk=row.pk).update(at=row.at - timedelta(minutes=minutes))


def test_guessing_has_to_wait_and_is_told_how_long(viewer: User) -> None:
    assert guess("ivo", 8) == [200] * 5 + [429] * 3
    right = sign_in("ivo", "looks")
    assert re.search(WAIT, right.content.decode().replace("\u00a0", " "))
    assert right.status_code == 429
    older(1.1)
    assert sign_in("ivo", "looks").status_code == 302
    assert FailedSignIn.objects.count() == 5
    assert guess("ivo", 6) == [200] * 5 + [429], "counted from the start"


def test_unknown_name_is_slowed_down_like_a_known_one(viewer: User) -> None:
    assert guess("nobody", 6) == [200] * 5 + [429]


def test_each_further_wrong_one_waits_longer_but_never_long(viewer: User) -> None:
    guess("ivo")
    for minutes in (1, 2, 4, 5):
        older(minutes - 0.1)
        assert guess("ivo", 1) == [429]
        older(0.2)
        assert guess("ivo", 1) == [200]


def test_strangers_elsewhere_lock_nobody_out(viewer: User) -> None:
    guess("ivo", 9, THERE)
    assert sign_in("ivo", "looks", HERE).status_code == 302


@pytest.mark.parametrize("address", ["", "not an address", "10.0.0.1"])
def test_guesses_from_ones_address_do_not_lock_out_a_known_browser(viewer: User, address: str) -> None:
    """As behind a proxy that forwards no client address, or without any address."""
    known = Client()
    assert sign_in("ivo", "looks", address, known).status_code == 302
    known.post("/sign-out/")
    guess("ivo", 9, address)
    assert sign_in("ivo", "looks", address).status_code == 429
    assert sign_in("ivo", "looks", address, known).status_code == 302
    known.post("/sign-out/")
    assert guess("ivo", 6, address, known) == [200] * 5 + [429]
    assert guess("tomas", 6, HERE, known) == [200] * 5 + [429], "it is known for one name"


def test_many_names_from_one_address_have_to_wait(viewer: User) -> None:
    for number in range(login_throttle.FREE_NAMES):
        assert guess(f"name{number}", 1) == [200]
    assert guess("another", 1) == [429]
    assert sign_in("ivo", "looks").status_code == 429
    assert sign_in("ivo", "looks", THERE).status_code == 302
    older(1.1)
    assert sign_in("ivo", "looks").status_code == 302


def everywhere(name: str, times: int) -> list[int]:
    """One guess from each address."""
    return [guess(name, 1, f"198.51.100.{number}")[0] for number in range(times)]


def test_guessing_from_a_thousand_addresses_is_slow_too(viewer: User) -> None:
    known = Client()
    assert sign_in("ivo", "looks", HERE, known).status_code == 302
    known.post("/sign-out/")
    assert everywhere("ivo", login_throttle.FREE_ANYWHERE) == [200] * login_throttle.FREE_ANYWHERE
    assert guess("ivo", 1, "203.0.113.9") == [429]
    assert sign_in("ivo", "looks", HERE).status_code == 429
    assert sign_in("ivo", "looks", HERE, known).status_code == 302, "a browser that is known is held up by nobody"
    assert guess("tomas", 1, "203.0.113.9") == [200]
    older(1.1)
    assert guess("ivo", 1, "203.0.113.9") == [200]
    assert guess("ivo", 1, "203.0.113.10") == [429], "one a minute, from wherever"
    older(60)
    assert sign_in("ivo", "looks", "203.0.113.9").status_code == 302


def test_failed_sign_ins_are_kept_a_month_and_ended_sessions_not(viewer: User) -> None:
    guess("ivo", 2)
    FailedSignIn.objects.filter(pk=FailedSignIn.objects.earliest("at").pk).update(
        at=database_clock.now() - timedelta(days=31)
    )
    here, ended = Client(), Client()
    here.force_login(viewer)
    ended.force_login(viewer)
    Session.objects.filter(pk=ended.session.session_key).update(expire_date=database_clock.now() - timedelta(hours=1))
    assert tasks.forget_sign_ins() == 2
    assert (FailedSignIn.objects.count(), Session.objects.get().pk) == (1, here.session.session_key)


def test_names_of_failed_sign_ins_need_their_view_right(operator: User, viewer: User) -> None:
    guess("a password that slipped", 1)
    listed, client = "/admin/pgqueue/failedsignin/", Client()
    operator.user_permissions.remove(*Permission.objects.filter(codename="view_failedsignin"))
    client.force_login(User.objects.get(pk=operator.pk))
    assert client.get(listed).status_code == 403
    operator.user_permissions.add(Permission.objects.get(codename="view_failedsignin"))
    page = client.get(listed)
    assert "a password that slipped" in page.content.decode()


def test_a_provider_gives_its_customers_half_of_ipv6() -> None:
    assert (
        login_throttle.network("2001:db8::1")
        == login_throttle.network("2001:db8::ffff:0:0:2")
        != login_throttle.network("2001:db9::1")
    )
    assert login_throttle.network("::ffff:192.0.2.1") == "192.0.2.1"


def test_sign_ins_are_in_the_log_and_in_the_audit_failed_ones_apart(
    viewer: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pgqueue.sign_in")
    sign_in("n" * 150, "secret one")
    sign_in("ivo", "looks")
    said = [
        (entry.who, entry.verb, entry.noun, entry.subject, entry.after) for entry in AuditEntry.objects.order_by("id")
    ]
    assert said == [
        ("ivo", "sign in", "person", "ivo", {"address": HERE}),
    ]
    failed = [(row.name, row.address, row.place) for row in FailedSignIn.objects.all()]
    assert failed == [("n" * 150, HERE, HERE)]
    assert f"A sign-in as '{'n' * 150}' from {HERE} failed." in caplog.messages
    assert f"'ivo' signed in from {HERE}." in caplog.messages
    assert "secret one" not in caplog.text


def test_django_admin_has_no_door_of_its_own(viewer: User) -> None:
    stranger = Client()
    assert stranger.get("/admin/login/?next=/admin/pgqueue/")["Location"] == "/sign-in/?next=%2Fadmin%2Fpgqueue%2F"
    assert stranger.get("/admin/login/?next=//evil.example/")["Location"] == "/sign-in/?next=%2Fadmin%2F"
    posted = stranger.post("/admin/login/", {"username": "ivo", "password": "looks"})
    assert posted["Location"].startswith("/sign-in/")
    assert "_auth_user_id" not in stranger.session
    stranger.force_login(viewer)
    answer = stranger.get("/admin/", follow=True)
    assert answer.status_code == 403
    assert "Django admin is open to staff only" in answer.content.decode()
    User.objects.update(is_staff=True)
    assert stranger.get("/admin/login/?next=/admin/pgqueue/")["Location"] == "/admin/pgqueue/"


def test_everybody_changes_their_own_password_and_ends_other_sessions(viewer: User) -> None:
    here, there = Client(), Client()
    here.force_login(viewer)
    there.force_login(viewer)
    assert 'href="/me/password/"' in here.get("/me/").content.decode()
    page = here.get("/me/password/").content.decode()
    assert "signs you out in every other browser" in page
    new = {"new_password1": "correct horse 7", "new_password2": "correct horse 7"}
    assert "was entered incorrectly" in here.post("/me/password/", {"old_password": "no", **new}).content.decode()
    done = here.post("/me/password/", {"old_password": "looks", **new}, follow=True)
    assert "Your password is changed. Wherever else you were signed in, you are no more." in done.content.decode()
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302
    assert sign_in("ivo", "correct horse 7").status_code == 302
    entry = AuditEntry.objects.get(verb="change password")
    assert (entry.who, entry.subject, entry.before, entry.after) == (viewer.username, viewer.username, None, None)


def test_a_password_that_is_too_common_is_refused(as_viewer: Client) -> None:
    asked = {"old_password": "looks", "new_password1": "password", "new_password2": "password"}
    assert "This password is too common." in as_viewer.post("/me/password/", asked).content.decode()
