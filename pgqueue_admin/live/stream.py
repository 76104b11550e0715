"""``/live/?t=overview``: the stream of one page (CONSOLE L1–L11)."""

from collections.abc import AsyncIterator

from django.http import HttpRequest, StreamingHttpResponse

from pgqueue_admin.live import frames
from pgqueue_admin.live.client import Client
from pgqueue_admin.live.hub import Hub
from pgqueue_admin.records.source import console_dsn

BEAT_SECONDS = 5.0  # L6: also keeps proxies from closing a quiet stream
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

hub = Hub(console_dsn)


async def live(request: HttpRequest) -> StreamingHttpResponse:
    events = _events(request.GET.getlist("t"))
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=HEADERS)


async def _events(addresses: list[str]) -> AsyncIterator[bytes]:
    client = hub.join(addresses)
    try:
        yield frames.HELLO
        async for frame in _frames(client):
            yield frame
    finally:
        hub.leave(client)


async def _frames(client: Client) -> AsyncIterator[bytes]:
    while True:
        yield await client.next(BEAT_SECONDS) or frames.BEAT
