"""Where a page of archived messages begins, as a URL parameter."""

from typing import Any

from pgqueue_admin.archive.messages import ArchiveKey
from pgqueue_admin.console import pagination
from pgqueue_admin.dialects import out_of_range_times


def packed(key: ArchiveKey | None) -> str:
    return pagination.pack(key.died_at.isoformat(), key.seq) if key else ""


def read(cursor: str | None) -> ArchiveKey | None:
    """None for a cursor that no page of ours wrote."""
    found: list[Any] = pagination.unpack(cursor) or []
    if len(found) != 2 or not isinstance(found[0], str) or not isinstance(found[1], int):
        return None
    died_at = out_of_range_times.read(found[0])
    return ArchiveKey(died_at, found[1]) if died_at and abs(found[1]) < 2**63 else None
