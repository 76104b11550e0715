"""``POST /api/marks/`` and its tokens: which marks are stored, which are refused, and where they are shown."""

import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console.failures import detail
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import ApiToken, AuditEntry, PostedMark
from pgqueue_admin.services import api_tokens, content_access, marks
from pgqueue_admin.services.api_tokens import TokenRefused
from tests.console.sampled import many_queues

pytestmark = pytest.mark.usefixtures("console_database")
HOSTILE = "<script>alert(1)</script>'\"&{{7*7}}"


@pytest.fixture
def token() -> str:
    return api_tokens.create("ci", ["marks"], "ana", "command")


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana", password="x")


def post(token: str, document: Any, **more: Any) -> Any:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client(enforce_csrf_checks=True).post("/api/marks/", body, "application/json", headers=headers, **more)


def said(answer: Any) -> str:
    return str(json.loads(answer.content)["error"])


def test_a_mark_is_kept_and_shown_among_the_changes(token: str, client: Client, ana: User) -> None:
    at = timezone.now() - timedelta(minutes=20)
    answer = post(token, {"text": f"Sales 3.4.1 {HOSTILE}", "at": at.isoformat(), "link": "https://ci.example/7"})
    assert answer.status_code == 201
    assert json.loads(answer.content)["who"] == "ci"
    (mark,) = PostedMark.objects.all()
    assert (mark.at, mark.who, mark.link) == (at, "ci", "https://ci.example/7")
    many_queues(1)
    client.force_login(ana)
    page = client.get("/").content.decode()
    assert "Sales 3.4.1 &lt;script&gt;" in page
    assert "<script>alert(1)" not in page
    assert 'href="https://ci.example/7"' in page


def test_mark_is_listed_before_a_failure_that_began_after_it(token: str, ana: User) -> None:
    post(token, {"text": "Sales 3.4.1"})
    changes = detail.before(timezone.now(), content_access.of(ana))
    assert [change.did for change in changes] == ["created ci", "Sales 3.4.1"][::-1]


@pytest.mark.parametrize("shown", ["", "wrong", "pgqueue_" + "x" * 43, "\udcff"])
def test_mark_without_a_valid_token_is_refused(token: str, shown: str) -> None:
    answer = post(shown.encode("latin-1", "replace").decode("latin-1"), {"text": "Sales 3.4.1"})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert said(answer).startswith("Nothing was marked.")
    assert not PostedMark.objects.exists()


def test_a_sign_in_is_no_token(client: Client, ana: User) -> None:
    client.force_login(ana)
    assert client.post("/api/marks/", b'{"text": "x"}', "application/json").status_code == 401
    assert client.get("/api/marks/").status_code == 405


def test_a_token_may_what_it_was_made_for_and_nothing_else(token: str) -> None:
    figures = api_tokens.create("prometheus", ["metrics"], "ana", "command")
    assert post(figures, {"text": "x"}).status_code == 401
    assert from_elsewhere(f"bearer {figures}") == 200
    assert from_elsewhere(f"Bearer {token}") == 403


def from_elsewhere(shown: str) -> int:
    return Client().get("/metrics", headers={"Authorization": shown}, REMOTE_ADDR="203.0.113.9").status_code


def test_an_expired_and_a_revoked_one_are_refused(token: str) -> None:
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert post(token, {"text": "x"}).status_code == 401
    ApiToken.objects.update(expires_at=None)
    assert post(token, {"text": "x"}).status_code == 201
    api_tokens.revoke("CI", "ana", "command")
    assert post(token, {"text": "x"}).status_code == 401
    with pytest.raises(TokenRefused, match="Nothing was revoked"):
        api_tokens.revoke("ci", "ana", "command")


def test_only_a_digest_is_kept_and_each_act_is_audited(token: str) -> None:
    api_tokens.revoke("ci", "ana", "command")
    row = ApiToken.objects.values().get()
    assert token not in str(row)
    assert re.fullmatch("[0-9a-f]{64}", row["digest"])
    told = AuditEntry.objects.filter(noun="token").order_by("id").values_list("verb", "who", "subject")
    assert list(told) == [("create", "ana", "ci"), ("revoke", "ana", "ci")]


def test_token_use_is_recorded_once_a_minute(token: str) -> None:
    post(token, {"text": "x"})
    first = ApiToken.objects.get().used_at
    post(token, {"text": "x"})
    assert first
    assert ApiToken.objects.get().used_at == first


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "no JSON object"),
        (b"[" * 8_000, "no JSON object"),
        (b"\xff\xfe", "no JSON object"),
        ([], "no JSON object"),
        ({}, "text:"),
        ({"text": 7}, "text:"),
        ({"text": "  "}, "text:"),
        ({"text": "two\nlines"}, "text:"),
        ({"text": "null\0"}, "text:"),
        (b'{"text": "\\ud800"}', "text:"),
        ({"text": "x" * 201}, "text:"),
        ({"text": "x", "at": "yesterday"}, "at:"),
        ({"text": "x", "at": 1.5}, "at:"),
        ({"text": "x", "at": "2026-11-21T10:00"}, "at:"),
        ({"text": "x", "at": "0001-01-01T00:00:00+14:00"}, "at:"),
        ({"text": "x", "at": "9999-12-31T23:59:59-14:00"}, "at:"),
        ({"text": "x", "link": "javascript:alert(1)"}, "link:"),
        ({"text": "x", "link": "https://[::1"}, "link:"),
        ({"text": "x", "link": "https://"}, "link:"),
        ({"text": "x", "link": ["https://a"]}, "link:"),
        ({"text": "x", "colour": "red"}, "no such field"),
    ],
)
def test_unreadable_mark_is_refused_in_a_sentence(token: str, document: Any, why: str) -> None:
    answer = post(token, document)
    assert answer.status_code == 400
    assert why in said(answer)
    assert not PostedMark.objects.exists()


def test_more_than_a_mark_needs_is_not_read(token: str) -> None:
    assert post(token, {"text": "x", "link": "y" * 9_000}).status_code == 413


def test_a_token_posts_so_many_an_hour(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_AN_HOUR", 2)
    assert [post(token, {"text": "x"}).status_code for _ in range(3)] == [201, 201, 429]
    PostedMark.objects.update(posted_at=timezone.now() - timedelta(hours=2))
    assert post(token, {"text": "x"}).status_code == 201


def test_marks_are_forgotten_after_a_year(token: str) -> None:
    post(token, {"text": "old"})
    PostedMark.objects.update(posted_at=timezone.now() - timedelta(days=366))
    post(token, {"text": "new"})
    assert tasks.forget_marks() == 1
    assert PostedMark.objects.get().text == "new"


def test_by_the_command_line() -> None:
    made, listed = io.StringIO(), io.StringIO()
    call_command("api_token", "create", "ci", "--may", "marks", "--days", "30", stdout=made)
    token = made.getvalue().strip()
    assert post(token, {"text": "x"}).status_code == 201
    call_command("api_token", "list", stdout=listed)
    assert "ci  marks  good  used" in listed.getvalue()
    assert token not in listed.getvalue()
    with pytest.raises(CommandError, match="There is one of the name"):
        call_command("api_token", "create", "CI", "--may", "metrics")
    call_command("api_token", "revoke", "ci", stdout=io.StringIO())
    assert post(token, {"text": "x"}).status_code == 401


def test_token_is_revoked_in_django_admin(token: str, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    chosen = {"action": "revoke", "_selected_action": [ApiToken.objects.get().pk]}
    page = client.post("/admin/pgqueue/apitoken/", chosen, follow=True).content.decode()
    assert "1 token revoked." in page
    assert post(token, {"text": "x"}).status_code == 401
    assert (
        ApiToken.objects.get().digest
        not in client.get(f"/admin/pgqueue/apitoken/{ApiToken.objects.get().pk}/").content.decode()
    )
