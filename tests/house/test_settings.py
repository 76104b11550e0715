"""What the settings promise: an asynchronous stack, one policy on every page, no console on engine children."""

import inspect

import pytest
from django.conf import settings
from django.test import Client
from django.utils.module_loading import import_string

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


@pytest.mark.parametrize("name", settings.MIDDLEWARE)
def test_every_middleware_is_asynchronous(name: str) -> None:
    middleware = import_string(name)
    assert middleware.async_capable or inspect.iscoroutinefunction(middleware)


@pytest.mark.usefixtures("console_database")
@pytest.mark.parametrize("path", ["/admin/login/", "/sign-in/", "/no-such-page/"])
def test_the_strict_policy_is_on_every_page(path: str) -> None:
    header = Client().get(path).headers["Content-Security-Policy"]
    assert {part.strip() for part in header.split(";")} == POLICY


def test_both_databases_hold_no_connection_between_requests() -> None:
    from pgqueue_admin.config import web_settings

    for entry in web_settings.DATABASES.values():
        assert entry["CONN_MAX_AGE"] == 0  # a pool refuses anything else
        assert entry["OPTIONS"]["pool"]["max_size"] == 8


def test_times_are_utc_everywhere() -> None:
    assert (settings.TIME_ZONE, settings.USE_TZ, settings.CELERY_TIMEZONE) == ("UTC", True, "UTC")
