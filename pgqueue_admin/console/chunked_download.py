"""Streams a large response in pieces, so that no process holds all of it."""

from collections.abc import AsyncIterator, Callable, Generator
from functools import partial
from typing import Self

from asgiref.sync import sync_to_async

Read = Callable[[int], bytes]  # the next piece from this offset, empty at the end


async def pieces(read: Read) -> AsyncIterator[bytes]:
    offset = 0
    while piece := await sync_to_async(read)(offset):
        yield piece
        offset += len(piece)


class FromThread:
    """A response body from a generator, each piece made in the request's thread. Closing the response closes it.

    An empty piece is not sent. It releases the thread, so that the response can be closed in between.
    """

    def __init__(self, first: bytes, rest: Generator[bytes]):
        self._first, self._rest = first, rest

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece: bytes | None = self._first
        self._first = b""
        while piece == b"":
            piece = await sync_to_async(partial(next, self._rest, None))()
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        self._rest.close()
