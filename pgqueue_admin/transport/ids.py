"""Ids of messages and conversations."""

import os

_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
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
    digits = os.urandom(32 * _AHEAD).hex()
    _made.extend((_dashed(digits, at), _dashed(digits, at + 32)) for at in range(0, len(digits), 64))


def _dashed(digits: str, at: int) -> str:
    start, variant = f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}", _VARIANT[digits[at + 16]]
    return f"{start}-4{digits[at + 13 : at + 16]}-{variant}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
