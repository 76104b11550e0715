"""Sends something large piece by piece, so that no process ever holds the whole of it."""

from collections.abc import AsyncIterator, Callable

from asgiref.sync import sync_to_async

Read = Callable[[int], bytes]  # from this offset: the next piece, empty at the end


async def pieces(read: Read) -> AsyncIterator[bytes]:
    offset = 0
    while piece := await sync_to_async(read)(offset):
        yield piece
        offset += len(piece)
