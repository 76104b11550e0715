"""The hub of followed topics, on the event loop: started by the first open page, kept for the process's life."""

import asyncio
from collections.abc import Callable, Iterable

from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.live import listener, topics
from pgqueue_admin.live.feed import Feed, Subscriber

MOST_TOPICS = 4  # a page follows two or three; an address with hundreds is no page of ours
About = tuple[str, str, VisibleQueues | None]  # topic name, argument, and the visible queues


class Hub:
    def __init__(self, dsn: Callable[[], str]):
        self._dsn = dsn
        self._feeds: dict[About, Feed] = {}
        self._task: asyncio.Task[None] | None = None

    def join(self, addresses: Iterable[str], seen: VisibleQueues | None = None) -> Subscriber:
        """Open a stream on these topics. Unknown ones are ignored; under a scope also those that cannot be narrowed."""
        self._listen()
        client = Subscriber()
        for address in sorted(set(addresses))[:MOST_TOPICS]:
            if found := topics.find(address):
                topic, argument = found
                if seen is not None and not topic.narrowed:
                    continue
                about = topic.name, argument, seen
                if about not in self._feeds:
                    self._feeds[about] = Feed(topic, argument, seen)
                self._feeds[about].join(client)
        return client

    def leave(self, client: Subscriber) -> None:
        for about, feed in list(self._feeds.items()):
            if client in feed.clients and feed.leave(client):
                del self._feeds[about]

    @property
    def feeds(self) -> list[Feed]:
        return list(self._feeds.values())

    async def close(self) -> None:
        """Stop listening and all feeds (tests; a web process ends with its loop)."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await asyncio.sleep(0)  # at the loop's next turn, a session that was being opened ends with the task
        for feed in self.feeds:
            feed.end()

    def _listen(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for channel in listener.wakes(self._dsn(), topics.channels()):
            for feed in self._feeds.values():
                if not channel or channel in feed.topic.woken_by:
                    feed.wake()
