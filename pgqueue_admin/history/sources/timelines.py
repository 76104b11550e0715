"""Whether a promoted server has all rows that were seen before, by its timelines."""

import logging
from typing import NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import HistorySource

log = logging.getLogger(__name__)
_FIRST = "00000001"


class Timeline(NamedTuple):
    """A server and its timeline, and at which byte of the log that began; None: nobody lets us know."""

    cluster: str
    began: int | None


def number(cluster: str) -> str:
    """Its timeline, eight digits; empty where nobody noted it, and on a standby."""
    return cluster.partition("/")[2]


def position(lsn: str) -> int:
    """In bytes, as pg_lsn says it."""
    high, low = lsn.split("/")
    return int(high, 16) << 32 | int(low, 16)


def of(connection: Connection, cluster: str, source: HistorySource) -> Timeline:
    """The line that ``connection`` is on; what the ledger knows of it is not asked again."""
    if cluster == source.cluster and source.timeline_start_lsn is not None:
        return Timeline(cluster, source.timeline_start_lsn)
    if number(cluster) == _FIRST:
        return Timeline(cluster, 0)
    return Timeline(cluster, max(_ends(connection, cluster).values(), default=None))


def has_all(connection: Connection, cluster: str, source: HistorySource) -> bool:
    """Whether the line of ``cluster`` branched off the very line that was read, and behind all that was seen there.

    Proven, not likely: what was committed before that byte of the log is there, and each transaction id and each number
    that was seen is used up. False, too, where the server's timelines, or what was seen, are not known.
    """
    before, ends = number(source.cluster), _ends(connection, cluster)
    if before not in ends or source.timeline_start_lsn != _began(ends, before) or not _is_noted(source):
        return False
    assert source.wal_flush_lsn is not None
    if source.wal_flush_lsn > ends[before]:
        return False
    log.warning(
        "History: %s is read on from another timeline, %s after %s: it began %s bytes of log behind all that was seen.",
        source.table, number(cluster), before, ends[before] - source.wal_flush_lsn,
    )  # fmt: skip
    return True


def _ends(connection: Connection, cluster: str) -> dict[str, int]:
    """Where each line ended that the one of ``cluster`` goes on from, the oldest first; empty: not known."""
    if not number(cluster) or not connection.value(postgresql().history.has_timelines()):
        return {}
    told = connection.value(postgresql().history.timelines()) or ""
    lines = (line.split() for line in told.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return {f"{int(each[0]):08X}": position(each[1]) for each in lines}


def _began(ends: dict[str, int], line: str) -> int:
    before = list(ends)[: list(ends).index(line)]
    return ends[before[-1]] if before else 0


def _is_noted(source: HistorySource) -> bool:
    """Whether the log was looked at with all that is known; a driver of an older version did not. A highest number that
    was only seen is given up."""
    if source.wal_flush_lsn is None or source.wal_flush_at is None:
        return False
    known = [source.watermark, source.candidate_at if source.snapshot_target else None]
    return all(instant is None or instant <= source.wal_flush_at for instant in known)
