"""Row ids for messages put into queues, in bulk: uuid4 takes half as long as reading the messages for a retry."""

import os

_BYTES = 16


def row_ids(count: int) -> list[str]:
    """Random UUIDs (RFC 9562, version 4), as the database writes them."""
    said = os.urandom(_BYTES * count).hex()
    return [_written(said[at : at + 2 * _BYTES]) for at in range(0, len(said), 2 * _BYTES)]


def _written(said: str) -> str:
    """``said``: 32 random hex digits; two encode version and variant."""
    variant = "89ab"[int(said[16], 16) & 3]
    return f"{said[:8]}-{said[8:12]}-4{said[13:16]}-{variant}{said[17:20]}-{said[20:]}"
