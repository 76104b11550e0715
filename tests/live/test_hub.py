"""Fan-out: each topic is rendered once and changes are sent to all clients; a slow client catches up (L6, L7)."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from django.contrib.sessions.backends.base import SessionBase

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.live import feed, session_check, topics
from pgqueue_admin.live import feed as clients
from pgqueue_admin.live.feed import Subscriber
from pgqueue_admin.live.hub import Hub
from tests.waiting import PATIENCE, until


class Board:
    """A topic for tests, which counts how often it was rendered."""

    def __init__(self) -> None:
        self.values = {"a": "1", "b": "1"}
        self.rendered = 0
        self.broken = False

    def render(self, argument: str) -> dict[str, str]:
        self.rendered += 1
        if self.broken:
            raise DatabaseDown
        return {**self.values, "about": argument}


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    monkeypatch.setattr(topics, "_topics", {})
    board = Board()
    topics.register("board", board.render, "test_wake", argument=str)
    return board


@pytest.fixture
async def hub(database: str, board: Board) -> AsyncIterator[Hub]:
    hub = Hub(lambda: database)
    yield hub
    await hub.close()


async def told(client: Subscriber) -> dict[str, str]:
    frame = await client.next(PATIENCE)
    assert frame is not None, "nothing came"
    return json.loads(frame.decode().split("data: ", 1)[1])


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def woken(dsn: str, board: Board) -> None:
    """Wake the hub and wait until it renders the current board. Earlier states were sent before that."""
    before = board.rendered
    with postgresql().connect(dsn, for_handlers=True) as connection:
        connection.notify("test_wake")
    await soon(lambda: board.rendered > before)


async def test_a_new_follower_gets_everything_then_only_what_changed(hub: Hub, board: Board, database: str) -> None:
    client = hub.join(["board:x"])
    assert await told(client) == {"a": "1", "b": "1", "about": "x"}
    board.values["b"] = "2"
    await woken(database, board)
    assert await told(client) == {"b": "2"}


async def test_a_wake_up_renders_once_for_all_who_follow(hub: Hub, board: Board, database: str) -> None:
    followers = [hub.join(["board:x"]) for _ in range(20)]
    for follower in followers:
        await told(follower)
    board.values["a"] = "2"
    await woken(database, board)
    assert [await told(follower) for follower in followers] == [{"a": "2"}] * 20
    assert board.rendered <= 3, "for those who joined, for whoever listens from now on, and for the wake-up"


async def test_slow_client_is_sent_the_whole_state_later(hub: Hub, board: Board, database: str) -> None:
    client = hub.join(["board:x"])
    await told(client)
    (feed,) = hub.feeds
    for number in range(clients.ROOM + 1):
        assert client not in feed.behind
        board.values["a"] = f"number {number}"
        await woken(database, board)
    assert client in feed.behind
    board.values["b"] = "last"
    await woken(database, board)
    assert [list(await told(client)) for _ in range(clients.ROOM)] == [["a"]] * clients.ROOM
    await woken(database, board)
    assert await told(client) == {**board.values, "about": "x"}


async def test_a_topic_that_fails_keeps_quiet_and_recovers(hub: Hub, board: Board, database: str) -> None:
    client = hub.join(["board:x"])
    await told(client)
    board.broken = True
    await woken(database, board)
    board.broken, board.values["a"] = False, "back"
    await woken(database, board)
    assert await told(client) == {"a": "back"}


async def test_feeds_without_clients_are_dropped(hub: Hub, board: Board) -> None:
    client = hub.join(["board:x", "nothing", "board:y"])
    assert [list(feed.clients) for feed in hub.feeds] == [[client], [client]]
    hub.leave(client)
    assert hub.feeds == []


async def test_closing_the_hub_leaves_no_open_session(database: str, board: Board) -> None:
    """At any moment of its start: the server would wait a minute for an unfinished sign-in."""
    before = sockets()
    for turns in range(60):
        hub = Hub(lambda: database)
        hub.join(["board:x"])
        for _ in range(turns):
            await asyncio.sleep(0)
        await hub.close()
        # other threads may open sockets meanwhile, but the loop gets no turn to do so
        until(lambda: sockets() <= before, what=f"no socket is left, {turns} turns after it began")


def sockets() -> set[str]:
    """The sockets that this process has open."""
    places = map(str, Path("/proc/self/fd").iterdir())
    return {place for place in places if os.path.realpath(place).rpartition("/")[2].startswith("socket:")}


async def test_equivalent_arguments_share_one_feed(hub: Hub, board: Board) -> None:
    topics.register("numbers", board.render, argument=lambda said: said.lstrip("0") if said.isdigit() else None)
    clients = [hub.join([f"numbers:{said}"]) for said in ("12", "012", "0000012", "x", "", "-12")]
    assert [(feed.topic.name, feed.argument) for feed in hub.feeds] == [("numbers", "12")]
    assert await told(clients[1]) == {"a": "1", "b": "1", "about": "12"}


async def test_an_argument_that_a_topic_does_not_take_makes_no_feed_of_its_own(hub: Hub, board: Board) -> None:
    topics.register("frame", board.render)
    for said in range(50):
        hub.join([f"frame:{said}"])
    assert [(feed.topic.name, feed.argument) for feed in hub.feeds] == [("frame", "")]


async def test_whether_somebody_may_look_waits_for_no_rendering(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, board: Board
) -> None:
    """Nor does other work that needs a thread, such as serving static files."""
    going_on, may_end = threading.Semaphore(0), threading.Event()

    def endless(argument: str) -> dict[str, str]:
        going_on.release()
        may_end.wait(PATIENCE)
        return {}

    topics.register("endless", endless, argument=str)
    monkeypatch.setattr(session_check, "_look", lambda session: "all")
    for number in range(100):
        hub.join([f"endless:{number}"])
    try:
        await soon(lambda: going_on.acquire(blocking=False))
        assert await asyncio.wait_for(session_check.SessionCheck().mark_of(SessionBase("key")), PATIENCE) == "all"
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "a file"), PATIENCE) == "a file"
        assert not may_end.is_set()
    finally:
        may_end.set()


async def test_a_quiet_stream_beats() -> None:
    assert await Subscriber().next(0.01) is None
    assert feed.beat_event("all") == b'event: beat\ndata: {"may":"all"}\n\n'


def test_an_event_stays_on_one_line() -> None:
    assert feed.figures_event({"a": "x\ny"}) == b'event: figures\ndata: {"a":"x\\ny"}\n\n'
