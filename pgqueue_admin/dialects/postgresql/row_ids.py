"""Ids of rows that are loaded in bulk."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from struct import Struct

_AHEAD = 128  # made at a time: each time lets all other threads of the process go first
_VERSION, _VARIANT = (bytes(number & mask | bit for number in range(256)) for mask, bit in ((0x0F, 0x40), (0x3F, 0x80)))
_sixteen = Struct("16s").iter_unpack


def row_ids() -> Iterator[bytes]:
    """Random UUIDs without end, as their sixteen bytes."""
    return chain.from_iterable(chain.from_iterable(map(_drawn, repeat(_AHEAD))))


def _drawn(count: int) -> Iterable[tuple[bytes]]:
    drawn = bytearray(os.urandom(16 * count))
    for place, made in ((6, _VERSION), (8, _VARIANT)):
        drawn[place::16] = drawn[place::16].translate(made)
    return _sixteen(drawn)
