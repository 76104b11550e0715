"""Two consoles on one host: cookies ignore ports, so each console names its cookies differently."""

from collections.abc import Iterator

import httpx
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User

from tests.architecture.test_deployment import run
from tests.live.site import Site, serve

NAMES = (
    "from django.conf import settings as s; import django; django.setup(); "
    "from pgqueue_admin.console import flash_cookie; from pgqueue_admin.console.account import sign_in; "
    "print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, sign_in.COOKIE, flash_cookie.FlashCookie.cookie_name)"
)


def names(**environment: str) -> set[str]:
    said = run("-c", NAMES, **environment)
    assert said.returncode == 0, said.stderr
    return set(said.stdout.split())


def test_names_are_those_of_one_installation() -> None:
    ours = {"SECRET_KEY": "one", "PUBLIC_URL": "http://127.0.0.1:8000"}
    assert len(names(**ours)) == 4
    assert names(**ours) == names(**ours), "all its web processes know who signed in"
    assert not names(**ours) & names(**{**ours, "PUBLIC_URL": "http://127.0.0.1:8001"})
    assert not names(**ours) & names(**{**ours, "SECRET_KEY": "two"})


@pytest.fixture
def sites(console_database: str) -> Iterator[list[Site]]:
    User.objects.create(username="ivo", password=PBKDF2PasswordHasher().encode("looks at both", "salt"))
    with serve(console_database) as one, serve(console_database) as other:
        yield [one, other]


def test_sign_in_at_one_console_keeps_the_session_of_the_other(sites: list[Site]) -> None:
    with httpx.Client(follow_redirects=True, timeout=60) as browser:  # one cookie jar: both hosts are 127.0.0.1
        for site in sites:
            page = browser.get(f"{site.url}/")
            token = page.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            asked = {"username": "ivo", "password": "looks at both", "csrfmiddlewaretoken": token}
            assert browser.post(str(page.url), data=asked, headers={"Referer": str(page.url)}).url.path == "/"
        for site in sites:
            assert browser.get(f"{site.url}/queues/", follow_redirects=False).status_code == 200
