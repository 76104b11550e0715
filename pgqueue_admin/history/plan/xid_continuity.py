"""Whether transaction ids in the ledger still mean the same: same table, same server, none reused."""

import time
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.sources import timelines
from pgqueue_admin.models import HistorySource

BETWEEN = 0.05  # seconds
WENT_BACK = "went back"  # stored as its server: once noticed, it stays until a person resumes the source
_NOTHING_NEW = "it was made anew, or dumped on this very server"
_SAY = "Nothing of it is read before somebody says how to go on (docs/how-to/resume-history.md)."


def is_known(connection: Connection, source: HistorySource) -> bool:
    """Whether the server's snapshots still cover what the ledger has read. False: the ledger says why."""
    now = _now(connection)
    if (why := _blocking_reason(now, source)) and not _lost_nothing(connection, now, source):
        if _is_behind(now, source) and not _is_elsewhere(now, source):
            ledger.comes_from(source, timelines.Timeline(WENT_BACK, source.timeline_start_lsn), source.oid)
        ledger.held_back(source, why)
        return False
    ledger.comes_from(source, timelines.of(connection, now.cluster, source), now.archive)
    return True


def cluster(connection: Connection) -> str:
    """The server's system identifier and WAL timeline."""
    known: str = _now(connection).cluster
    return known


def is_other_line(before: str, now: str) -> bool:
    """Same server, other timeline: a promoted standby or a restored backup has taken its place."""
    return server(before) == server(now) and timelines.number(before) not in ("", timelines.number(now))


def written(connection: Connection) -> int:
    """The WAL position in bytes; everything seen so far lies before it.

    Waits until finished transactions are flushed. A rollback (or an asynchronous commit) is visible before it is on
    disk, and after a crash its id is reused. Open transactions may be flushed much later; no snapshot includes them.
    """
    log = connection.all(postgresql().history.written())[0]
    deadline = time.monotonic() + log.within
    while not connection.value(postgresql().history.is_on_disk(), {"lsn": log.lsn}) and time.monotonic() < deadline:
        time.sleep(BETWEEN)
    bytes_of_log: int = timelines.position(log.lsn)
    return bytes_of_log


def blocking_reason(connection: Connection, source: HistorySource) -> str:
    """Why the archive rows read may not be those planned, or ""."""
    why = _blocking_reason(_now(connection), source)
    return f"While it was read: {why}" if why else ""


def _now(connection: Connection) -> Any:
    return connection.all(postgresql().history.instant())[0]


def _blocking_reason(now: Any, source: HistorySource) -> str:
    if _is_elsewhere(now, source):
        return (
            "The archive was moved to another server: transaction ids mean nothing there."
            f" {ledger.to_go_on(source)} {_SAY}"
        )
    if source.cluster == WENT_BACK or _is_behind(now, source):
        return f"The server was put back: it gives out transaction ids again that were read up to. {_SAY}"
    if _is_another(now, source):
        return (
            "The archive is another table than the one that was read: it was made anew, or restored from a dump, whose"
            f" transaction ids are those of the server that was dumped. {ledger.to_go_on(source, _NOTHING_NEW)} {_SAY}"
        )
    if is_other_line(source.cluster, now.cluster):
        return (
            "A standby was promoted, or a backup restored, since it was read: what was read last it may not have, and"
            f" give out the same transaction ids again. {ledger.to_go_on(source)} {_SAY}"
        )
    return ""


def _lost_nothing(connection: Connection, now: Any, source: HistorySource) -> bool:
    """Whether only the timeline differs, and it provably branched off behind everything seen."""
    if _is_elsewhere(now, source) or source.cluster == WENT_BACK or _is_behind(now, source) or _is_another(now, source):
        return False
    return timelines.has_all(connection, now.cluster, source)


def _is_elsewhere(now: Any, source: HistorySource) -> bool:
    return source.cluster not in ("", WENT_BACK) and server(source.cluster) != server(now.cluster)


def _is_another(now: Any, source: HistorySource) -> bool:
    """False after a person's resume: the present table counts."""
    return bool(source.cluster) and source.oid not in (None, now.archive)


def _is_behind(now: Any, source: HistorySource) -> bool:
    """Transaction ids are being reused: a lagging standby was promoted, or an older copy was put in place."""
    read = [
        _next(snapshot) for snapshot in (source.snapshot, source.snapshot_target, source.events_snapshot) if snapshot
    ]
    return _next(now.snapshot) < max(read, default=0)


def _next(snapshot: str) -> int:
    """The first transaction id not assigned yet."""
    return int(snapshot.split(":")[1])


def server(cluster: str) -> str:
    """The system identifier, without the timeline."""
    return cluster.partition("/")[0]
