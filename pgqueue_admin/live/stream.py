"""``/live/?t=overview``: the stream of one page (CONSOLE L1–L11)."""

import time
from collections.abc import AsyncIterator
from contextlib import suppress

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from pgqueue_admin.live import sse
from pgqueue_admin.live.hub import Hub
from pgqueue_admin.live.session_check import SessionCheck, SignedOut
from pgqueue_admin.live.stream_limit import REFUSAL, StreamLimit
from pgqueue_admin.live.subscriber import Subscriber
from pgqueue_admin.models.queue_database import console_dsn

BEAT_SECONDS = 5.0  # L6: also keeps proxies from closing a quiet stream; as often it is asked who looks
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

hub = Hub(console_dsn)
persons = SessionCheck()
opened = StreamLimit()


async def live(request: HttpRequest) -> HttpResponseBase:
    """Ends within seconds once its person is signed out; the page asks again, is told 401, and says so."""
    if opened.is_full(_key(request.session)):
        return HttpResponse(REFUSAL, status=429, content_type="text/plain", headers={"Retry-After": "30"})
    events = _events(request.GET.getlist("t"), request.session)
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=HEADERS)


async def _events(addresses: list[str], session: SessionBase) -> AsyncIterator[bytes]:
    if opened.is_full(_key(session)):  # since it was asked: the page asks again, and is told
        return
    with opened.one(_key(session)):
        client = hub.join(addresses)
        try:
            yield sse.HELLO
            with suppress(SignedOut):
                async for frame in _frames(client, session):
                    yield frame
        finally:
            hub.leave(client)


def _key(session: SessionBase) -> str:
    return session.session_key or ""


async def _frames(client: Subscriber, session: SessionBase) -> AsyncIterator[bytes]:
    """What is told, and a beat each time that its person was asked for."""
    asked = float("-inf")
    while True:
        if (rest := asked + BEAT_SECONDS - time.monotonic()) <= 0:
            asked = time.monotonic()
            yield sse.beat(await persons.may(session))
        elif frame := await client.next(rest):
            yield frame
