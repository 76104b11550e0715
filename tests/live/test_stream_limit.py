"""A sign-in may follow a limited number of pages at once; open ones are not interrupted (L8)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, StreamingHttpResponse

from pgqueue_admin.live import feed, stream
from pgqueue_admin.live.hub import Hub
from pgqueue_admin.live.stream import StreamLimit
from tests.waiting import PATIENCE


class Persons:
    async def mark_of(self, session: SessionBase) -> str:
        return "all"


@pytest.fixture(autouse=True)
async def hub(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hub]:
    hub = Hub(lambda: database)
    for name, made in {"hub": hub, "persons": Persons(), "opened": StreamLimit()}.items():
        monkeypatch.setattr(stream, name, made)
    yield hub
    await hub.close()


def asked_by(key: str) -> HttpRequest:
    request = HttpRequest()
    request.session = SessionBase(f"the key of {key}")  # shorter keys are invalid
    return request


async def followed(key: str) -> Any:
    """An open page: its stream, after the first event."""
    answer = await stream.live(asked_by(key))
    assert isinstance(answer, StreamingHttpResponse)
    frames_of = aiter(answer.streaming_content)  # type: ignore[arg-type]
    assert await anext(frames_of) == feed.HELLO
    return frames_of


async def test_stream_over_the_limit_is_refused_and_open_ones_go_on() -> None:
    pages = [await followed("ana") for _ in range(stream.MOST)]
    refused: Any = await stream.live(asked_by("ana"))
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
    assert b"12 pages of this sign-in are open" in refused.content
    assert await anext(pages[0]) == feed.beat_event("all")
    await followed("ivo")  # another sign-in
    await pages.pop().aclose()
    async with asyncio.timeout(PATIENCE):  # the server closes the generator a little later
        while stream.opened.is_full(asked_by("ana").session.session_key or ""):
            await asyncio.sleep(0)
    await followed("ana")  # takes the free place


async def test_streams_that_are_asked_for_together_are_counted_too() -> None:
    """A stream begins after its response does, and all these requests came while there was room."""
    answers: list[Any] = [await stream.live(asked_by("ana")) for _ in range(stream.MOST + 3)]
    begun = [aiter(answer.streaming_content) for answer in answers]
    assert [await anext(each, None) for each in begun] == [feed.HELLO] * stream.MOST + [None] * 3


async def test_closed_streams_leave_no_entry() -> None:
    seen = StreamLimit()
    with seen.one("ana"), seen.one("ana"):
        assert not seen.is_full("ana")
    assert not seen._streams
