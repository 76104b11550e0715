"""Static files bypass Django's middleware, and still get the headers of pages."""

from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

pytestmark = pytest.mark.filterwarnings("ignore:No directory")  # static files are collected at start-up, not by tests


async def headers(monkeypatch: pytest.MonkeyPatch, path: str, scheme: str) -> dict[bytes, bytes]:
    from whitenoise.responders import StaticFile

    from pgqueue_admin.config import asgi

    monkeypatch.setattr(asgi._security, "sts_seconds", 31_536_000)
    here = StaticFile(__file__, [("Cache-Control", "public"), ("Content-Type", "text/plain")])
    monkeypatch.setitem(asgi._files, "/static/here.txt", here)
    scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "query_string": b""}
    talk = ApplicationCommunicator(asgi.application, {**scope, "scheme": scheme, "headers": [(b"host", b"x")]})
    await talk.send_input({"type": "http.request", "body": b""})
    begun = await talk.receive_output(timeout=60)
    await talk.receive_output(timeout=60)
    return dict(begun["headers"])


@pytest.mark.parametrize("path", ["/static/here.txt", "/static/nowhere.txt"])
async def test_no_type_is_guessed_and_https_stays(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    found = await headers(monkeypatch, path, "https")
    assert found[b"x-content-type-options"] == b"nosniff"
    assert found[b"strict-transport-security"].startswith(b"max-age=31536000")
    assert found[b"content-type"].startswith(b"text/plain")
    assert b"strict-transport-security" not in await headers(monkeypatch, path, "http")
