"""A session lasts twelve hours, and one hour after the last page or act; an open page alone does not extend it."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

NOW = timezone.now
POLL = {"HX-Request": "true", "HX-Trigger": "going-on"}


class Clock:
    """The host's clock, moved forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._later = timedelta()
        monkeypatch.setattr(timezone, "now", lambda: NOW() + self._later)

    def go_on(self, **by: float) -> None:
        self._later += timedelta(**by)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def person(viewer: User) -> Client:
    """A user who signed in by the form."""
    client = Client()
    assert client.post("/sign-in/", {"username": "ivo", "password": "looks"}).status_code == 302
    assert is_in(client)
    return client


def is_in(client: Client, **headers: Any) -> bool:
    return client.get("/", headers=headers).status_code == 200


def test_an_hour_after_the_last_page_it_has_ended(person: Client, clock: Clock) -> None:
    clock.go_on(minutes=59)
    assert is_in(person)
    clock.go_on(minutes=59)
    assert is_in(person)
    clock.go_on(minutes=61)
    assert not is_in(person)


def test_twelve_hours_after_it_began_too_however_busy(person: Client, clock: Clock) -> None:
    for _ in range(23):
        clock.go_on(minutes=30)
        assert is_in(person)
    clock.go_on(minutes=29)
    assert is_in(person)
    clock.go_on(minutes=2)
    assert not is_in(person)


def test_password_change_does_not_restart_the_session(person: Client, clock: Clock) -> None:
    new = {"old_password": "looks", "new_password1": "correct horse 7", "new_password2": "correct horse 7"}
    for _ in range(23):
        clock.go_on(minutes=30)
        assert is_in(person)
    assert person.post("/me/password/", new).status_code == 302
    clock.go_on(minutes=29)
    assert is_in(person)
    clock.go_on(minutes=2)
    assert not is_in(person)


def test_automatic_requests_do_not_extend_the_session(person: Client, clock: Clock) -> None:
    for _ in range(4):
        clock.go_on(minutes=14)
        assert is_in(person, **POLL)
        assert person.get("/live/?t=frame").status_code == 200
        assert person.head("/me/keys/").status_code == 200
    clock.go_on(minutes=5)
    assert not is_in(person)


def test_session_limits_are_settings(person: Client, clock: Clock, settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "IDLE_MINUTES": 5, "SESSION_HOURS": 1}
    assert is_in(person)
    clock.go_on(minutes=6)
    assert not is_in(person)


def test_a_page_a_second_is_not_a_row_a_second(person: Client, clock: Clock) -> None:
    (before,) = Session.objects.values_list("expire_date", flat=True)
    clock.go_on(seconds=50)
    assert is_in(person)
    assert Session.objects.filter(expire_date=before).exists()
    clock.go_on(seconds=20)
    assert is_in(person)
    assert Session.objects.filter(expire_date__gt=before + timedelta(seconds=60)).exists()


def test_a_console_that_only_looks_shows_its_pages_all_the_same(person: Client, clock: Clock) -> None:
    """As after a failover, on a standby."""
    clock.go_on(minutes=30)
    with connections["default"].cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
        try:
            assert is_in(person)
        finally:
            cursor.execute("set default_transaction_read_only = off")


def test_the_cookie_lasts_as_long_as_the_sign_in_may(person: Client) -> None:
    assert settings.SESSION_COOKIE_AGE == 12 * 3600
    assert settings.PGQUEUE["IDLE_MINUTES"] == 60
