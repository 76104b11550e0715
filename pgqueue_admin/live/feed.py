"""One followed topic: rendered once per wake-up, the difference sent to everybody who follows it."""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from pgqueue_admin.live import sse
from pgqueue_admin.live.subscriber import Subscriber
from pgqueue_admin.live.topics import Topic

log = logging.getLogger(__name__)
AGAIN_SECONDS = 1.0
# Of their own: who follows very much delays figures, and neither pages, their files nor whether somebody may look.
_THREADS = ThreadPoolExecutor(4, "live")


class Feed:
    def __init__(self, topic: Topic, argument: str):
        self.topic, self.argument = topic, argument
        self.clients: set[Subscriber] = set()
        self.behind: set[Subscriber] = set()  # of those, who gets everything with the next rendering
        self._last: dict[str, str] = {}
        self._wanted = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Render again. Wake-ups during a rendering make one more, never a queue of them."""
        self._wanted.set()

    def join(self, client: Subscriber) -> None:
        """A new follower gets everything once: samples may have come between its page and its stream."""
        self.clients.add(client)
        self.behind.add(client)
        self.wake()

    def leave(self, client: Subscriber) -> bool:
        """Whether nobody is left."""
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
                # pages keep their figures and say their age by themselves
                log.warning("could not render %s:%s for open pages", self.topic.name, self.argument, exc_info=True)
                await asyncio.sleep(AGAIN_SECONDS)
                self.wake()  # nobody may announce anything for long

    def _render(self) -> Mapping[str, str]:
        try:
            return self.topic.render(self.argument)
        finally:
            connections.close_all()  # this thread's; outside a request nobody else gives them back

    def _send(self, values: Mapping[str, str]) -> None:
        changed = {key: value for key, value in values.items() if self._last.get(key) != value}
        self._last = dict(values)
        everything = b""
        difference = sse.figures(changed) if changed else b""
        for client in list(self.clients):
            frame = difference
            if client in self.behind:
                frame = everything = everything or sse.figures(values)
                self.behind.discard(client)
            if frame and not client.push(frame):
                self.behind.add(client)
