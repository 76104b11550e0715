"""One open stream: a bounded queue. Who reads too slowly loses events, never the server its memory."""

import asyncio

ROOM = 50


class Subscriber:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(ROOM)

    def push(self, frame: bytes) -> bool:
        """Whether there was room for it."""
        try:
            self._queue.put_nowait(frame)
        except asyncio.QueueFull:
            return False
        return True

    async def next(self, within: float) -> bytes | None:
        """The next frame, or None when there was none in time."""
        try:
            return await asyncio.wait_for(self._queue.get(), within)
        except TimeoutError:
            return None
