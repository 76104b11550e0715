"""One open stream: a bounded queue. Who reads too slowly loses events, never the server its memory."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgqueue_admin.live.feed import Feed

ROOM = 50


class Client:
    def __init__(self) -> None:
        self.behind: set[Feed] = set()  # feeds that owe this client everything
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(ROOM)

    def push(self, frame: bytes, feed: "Feed") -> None:
        try:
            self._queue.put_nowait(frame)
        except asyncio.QueueFull:
            self.behind.add(feed)  # the next rendering sends all of it

    async def next(self, within: float) -> bytes | None:
        """The next frame, or None when there was none in time."""
        try:
            return await asyncio.wait_for(self._queue.get(), within)
        except TimeoutError:
            return None
