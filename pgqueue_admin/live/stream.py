"""``/live/?t=overview``: the stream of one page (CONSOLE L1–L11)."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.live import feed
from pgqueue_admin.live.feed import Subscriber
from pgqueue_admin.live.hub import Hub
from pgqueue_admin.live.session_check import SessionCheck, SignedOut, scopes_in
from pgqueue_admin.models.queue_database import console_dsn

# How many streams each session has open: no browser shows more pages at once than it may have.
MOST = 12  # a hidden page closes its stream, and browsers allow six connections to a host (over HTTP/2 more)
REFUSAL = f"{MOST} pages of this sign-in are open and followed already: close one, and this one goes on by itself.\n"


class StreamLimit:
    def __init__(self) -> None:
        self._streams: Counter[str] = Counter()

    def is_full(self, session: str) -> bool:
        return self._streams[session] >= MOST

    @contextmanager
    def one(self, session: str) -> Iterator[None]:
        self._streams[session] += 1
        try:
            yield
        finally:
            self._streams[session] -= 1
            self._streams += Counter()  # drops zero counts


BEAT_SECONDS = 5.0  # L6: also keeps proxies from closing a quiet stream; the session is checked as often
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

hub = Hub(console_dsn)
persons = SessionCheck()
opened = StreamLimit()


async def live(request: HttpRequest) -> HttpResponseBase:
    """Ends within seconds once its person is signed out; the page reconnects, gets 401, and says so."""
    if opened.is_full(_key(request.session)):
        return HttpResponse(REFUSAL, status=429, content_type="text/plain", headers={"Retry-After": "30"})
    events = _events(request.GET.getlist("t"), request.session, visible_queues.current())
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=HEADERS)


async def _events(
    addresses: list[str], session: SessionBase, seen: VisibleQueues | None = None
) -> AsyncIterator[bytes]:
    if opened.is_full(_key(session)):  # full since the first check: the page reconnects, and is refused
        return
    with opened.one(_key(session)):
        client = hub.join(addresses, seen)
        try:
            yield feed.HELLO
            with suppress(SignedOut):
                async for frame in _frames(client, session):
                    yield frame
        finally:
            hub.leave(client)


def _key(session: SessionBase) -> str:
    return session.session_key or ""


async def _frames(client: Subscriber, session: SessionBase) -> AsyncIterator[bytes]:
    """Frames of the topics, and a beat after each session check. Ends once the person may see other queues."""
    asked, scopes = float("-inf"), None
    while True:
        if (rest := asked + BEAT_SECONDS - time.monotonic()) <= 0:
            asked = time.monotonic()
            yield feed.beat_event(mark := await persons.mark_of(session))
            if mark and scopes not in (None, scopes_in(mark)):
                return
            scopes = scopes_in(mark) if mark else scopes
        elif frame := await client.next(rest):
            yield frame
