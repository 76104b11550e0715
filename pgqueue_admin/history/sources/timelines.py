"""Whether a promoted server has all rows seen before, proven by its timelines."""

import logging
from typing import NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import HistorySource

log = logging.getLogger(__name__)
_FIRST = "00000001"


class Timeline(NamedTuple):
    """A server with its timeline, and the WAL byte at which that began; None: unknown."""

    cluster: str
    began: int | None


def number(cluster: str) -> str:
    """The timeline, eight digits; empty if not recorded, and on a standby."""
    return cluster.partition("/")[2]


def position(lsn: str) -> int:
    """A pg_lsn in bytes."""
    high, low = lsn.split("/")
    return int(high, 16) << 32 | int(low, 16)


def of(connection: Connection, cluster: str, source: HistorySource) -> Timeline:
    """The timeline of ``connection``; what the ledger knows is not queried again."""
    if cluster == source.cluster and source.timeline_start_lsn is not None:
        return Timeline(cluster, source.timeline_start_lsn)
    if number(cluster) == _FIRST:
        return Timeline(cluster, 0)
    return Timeline(cluster, max(_ends(connection, cluster).values(), default=None))


def has_all(connection: Connection, cluster: str, source: HistorySource) -> bool:
    """Whether the timeline of ``cluster`` branched off exactly the one that was read, behind all that was seen there.

    A proof: everything committed before that WAL byte is there, and every transaction id and number seen is used up.
    False, too, if the server's timelines, or the position seen, are unknown.
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
    """Where each earlier timeline of ``cluster`` ended, the oldest first; empty: unknown."""
    if not number(cluster) or not connection.value(postgresql().history.has_timelines()):
        return {}
    told = connection.value(postgresql().history.timelines()) or ""
    lines = (line.split() for line in told.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return {f"{int(each[0]):08X}": position(each[1]) for each in lines}


def _began(ends: dict[str, int], line: str) -> int:
    before = list(ends)[: list(ends).index(line)]
    return ends[before[-1]] if before else 0


def _is_noted(source: HistorySource) -> bool:
    """Whether the WAL position was recorded with all that is known; older drivers did not. A highest number that was
    only seen does not count: it is dropped."""
    if source.wal_flush_lsn is None or source.wal_flush_at is None:
        return False
    known = [source.watermark, source.candidate_at if source.snapshot_target else None]
    return all(instant is None or instant <= source.wal_flush_at for instant in known)
