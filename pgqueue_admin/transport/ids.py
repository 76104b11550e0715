"""Ids of messages and conversations."""

import os
import re
from collections.abc import Iterator

_DIGITS = re.compile("(.{8})(.{4})(.{3})(.{3})(.{12})")  # what is random of a UUID
_UUID = "%s-%s-4%s-a%s-%s"
_VERSION, _VARIANT = (bytes(number & mask | bit for number in range(256)) for mask, bit in ((0x0F, 0x40), (0x3F, 0x80)))
_AHEAD = 128  # pairs made at a time: each time lets all other threads of the process go first
_made: list[tuple[str, str]] = []
os.register_at_fork(after_in_child=_made.clear)  # or parent and child would give the same


def new_ids() -> tuple[str, str]:
    """Two texts of random UUIDs, as ``str(uuid4())`` writes them, for a fraction of what those cost."""
    try:
        return _made.pop()
    except IndexError:
        _make()
        return new_ids()


def _make() -> None:
    """Many at once, by what the interpreter does in C."""
    drawn = _DIGITS.findall(os.urandom(15 * 2 * _AHEAD).hex())
    ids = [_UUID % digits for digits in drawn]
    _made.extend(zip(ids[::2], ids[1::2], strict=True))


def row_ids() -> Iterator[bytes]:
    """Random UUIDs without end, as their sixteen bytes."""
    while True:
        drawn = bytearray(os.urandom(16 * _AHEAD))
        for place, made in ((6, _VERSION), (8, _VARIANT)):
            drawn[place::16] = drawn[place::16].translate(made)
        for start in range(0, len(drawn), 16):
            yield bytes(drawn[start : start + 16])
