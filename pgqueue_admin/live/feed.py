"""One followed topic: rendered once per wake-up; changes are sent to all followers with the same scope."""

import asyncio
import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.live.topics import Topic

# Server-sent events as bytes (HTML standard, section 9.2).
HELLO = b"retry: 2000\n: hello\n\n"


def figures_event(values: Mapping[str, str]) -> bytes:
    """An event with changed figures, formatted once for all followers. JSON keeps it on one line."""
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"event: figures\ndata: {data}\n\n".encode()


def beat_event(may: str) -> bytes:
    """A heartbeat of the stream, with the mark of what its person may do; empty while that is unknown."""
    return f'event: beat\ndata: {{"may":"{may}"}}\n\n'.encode()


# One open stream: a bounded queue. A slow reader loses events, and the server's memory stays bounded.
ROOM = 50


class Subscriber:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(ROOM)

    def push(self, frame: bytes) -> bool:
        """Queue a frame; False if there is no room."""
        try:
            self._queue.put_nowait(frame)
        except asyncio.QueueFull:
            return False
        return True

    async def next(self, within: float) -> bytes | None:
        """The next frame; None if there was none in time."""
        try:
            return await asyncio.wait_for(self._queue.get(), within)
        except TimeoutError:
            return None


log = logging.getLogger(__name__)
AGAIN_SECONDS = 1.0
# Threads of their own: many followers delay figures, but neither pages, files nor session checks.
_THREADS = ThreadPoolExecutor(4, "live")


class Feed:
    def __init__(self, topic: Topic, argument: str, seen: VisibleQueues | None = None):
        self.topic, self.argument, self._seen = topic, argument, seen
        self.clients: set[Subscriber] = set()
        self.behind: set[Subscriber] = set()  # clients that get everything with the next rendering
        self._last: dict[str, str] = {}
        self._wanted = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Render again. Wake-ups during a rendering cause one more, never a queue of them."""
        self._wanted.set()

    def join(self, client: Subscriber) -> None:
        """A new follower gets everything once: samples may have arrived between its page and its stream."""
        self.clients.add(client)
        self.behind.add(client)
        self.wake()

    def leave(self, client: Subscriber) -> bool:
        """Remove a follower; True if none is left."""
        self.clients.discard(client)
        self.behind.discard(client)
        if not self.clients:
            self.end()
        return not self.clients

    def end(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                self._send(await asyncio.get_running_loop().run_in_executor(_THREADS, self._render))
            except Exception:
                # pages keep their figures and show their age by themselves
                log.warning("could not render %s:%s for open pages", self.topic.name, self.argument, exc_info=True)
                await asyncio.sleep(AGAIN_SECONDS)
                self.wake()  # the next wake-up may be far off

    def _render(self) -> Mapping[str, str]:
        try:
            with visible_queues.within(self._seen):
                return self.topic.render(self.argument)
        finally:
            connections.close_all()  # of this thread; outside a request nothing else closes them

    def _send(self, values: Mapping[str, str]) -> None:
        changed = {key: value for key, value in values.items() if self._last.get(key) != value}
        self._last = dict(values)
        everything = b""
        difference = figures_event(changed) if changed else b""
        for client in list(self.clients):
            frame = difference
            if client in self.behind:
                frame = everything = everything or figures_event(values)
                self.behind.discard(client)
            if frame and not client.push(frame):
                self.behind.add(client)
