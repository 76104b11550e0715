"""The ASGI application: static files by WhiteNoise, everything else by Django."""

import os
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from io import BytesIO
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import get_resolver

from pgqueue_admin.osproc import gc_freeze

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.web_settings")
django.setup(set_prefix=False)


class OneThread(ASGIHandler):
    """Runs a whole request, middleware included, in one call on one thread.

    Django's own handler switches between event loop and thread twice per middleware: a third of a page's time here.
    An asynchronous view is still awaited on the loop, and its stream never touches a thread.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self._answer)(request)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.streaming:
            connections.close_all()  # else an open stream would hold this thread's database session while it lasts
        return response


def _insist_on_own_sessions() -> None:
    """Raises SystemExit."""
    from pgqueue_admin.models import pooler_check

    pooler_check.insist()


def _settle() -> None:
    _ = get_resolver().url_patterns  # imports the views now, not during the first request
    gc_freeze.settle()  # a full collection took 70 ms of a page


_insist_on_own_sessions()
_django = OneThread()
_settle()

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


def _static_files() -> Any:
    from django.conf import settings
    from whitenoise import WhiteNoise

    hashed = r"^.+\.[0-9a-f]{12}\..+$"
    return WhiteNoise(None, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL, immutable_file_test=hashed)


_files = _static_files().files
_STATIC = django_settings.STATIC_URL
_security = SecurityMiddleware(lambda request: HttpResponse())


async def static(scope: dict[str, Any], send: Send) -> None:
    """Serve a static file without WhiteNoise's middleware or WSGI application: both wait for Django's sync thread."""
    found = _files.get(scope["path"])
    if found is None:
        headers = [("Content-Type", "text/plain"), *_secured(scope)]
        return await _answer(send, HTTPStatus.NOT_FOUND, headers, b"No such file.")
    asked = {
        f"HTTP_{name.decode().upper().replace('-', '_')}": value.decode("latin-1") for name, value in scope["headers"]
    }
    answer = found.get_response(scope["method"], asked)
    body = await to_thread(_read, answer.file) if answer.file else b""
    await _answer(send, answer.status, [*answer.headers, *_secured(scope)], body)


def _secured(scope: dict[str, Any]) -> list[tuple[str, str]]:
    """Headers that Django's SecurityMiddleware sets on a page: nosniff, HSTS."""
    given = _security.process_response(ASGIRequest(scope, BytesIO()), HttpResponse())
    return [(name, value) for name, value in given.items() if name != "Content-Type"]


def _read(file: Any) -> bytes:
    with file:
        read: bytes = file.read()
        return read


async def _answer(send: Send, status: HTTPStatus, headers: list[tuple[str, str]], body: bytes) -> None:
    wire = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": int(status), "headers": wire})
    await send({"type": "http.response.body", "body": body})


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "http" and scope["path"].startswith(_STATIC):
        await static(scope, send)
    else:
        await _django(scope, receive, send)
