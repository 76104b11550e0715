"""Whether transaction ids in the ledger still mean the same: same table, same server, none reused."""

import time
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.sources import timelines
from pgqueue_admin.models import HistorySource

BETWEEN = 0.05  # seconds
WENT_BACK = "went back"  # in place of its server: noticed once, it stays until somebody says what was read
_NOTHING_NEW = "it was made anew, or dumped on this very server"
_SAY = "Nothing of it is read before somebody says how to go on (docs/how-to/resume-history.md)."


def is_known(connection: Connection, source: HistorySource) -> bool:
    """Whether what the ledger read of the archive is what its server calls read. False: the ledger says why."""
    now = _now(connection)
    if (why := _blocking_reason(now, source)) and not _lost_nothing(connection, now, source):
        if _is_behind(now, source) and not _is_elsewhere(now, source):
            ledger.comes_from(source, timelines.Timeline(WENT_BACK, source.timeline_start_lsn), source.oid)
        ledger.held_back(source, why)
        return False
    ledger.comes_from(source, timelines.of(connection, now.cluster, source), now.archive)
    return True


def cluster(connection: Connection) -> str:
    """Which server it is, and which timeline of its log."""
    known: str = _now(connection).cluster
    return known


def is_other_line(before: str, now: str) -> bool:
    """Of one server: a standby of it, or a backup, goes on in its place since then."""
    return server(before) == server(now) and timelines.number(before) not in ("", timelines.number(now))


def written(connection: Connection) -> int:
    """How many bytes of the server's log are written: all that was seen until now lies before.

    What of it had ended is on the disk: a rollback is seen before it is (a commit, too, where it is asynchronous), and
    after a crash its id is given out again. What goes on may wait for its place there for long, and is in no snapshot.
    """
    log = connection.all(postgresql().history.written())[0]
    deadline = time.monotonic() + log.within
    while not connection.value(postgresql().history.is_on_disk(), {"lsn": log.lsn}) and time.monotonic() < deadline:
        time.sleep(BETWEEN)
    bytes_of_log: int = timelines.position(log.lsn)
    return bytes_of_log


def blocking_reason(connection: Connection, source: HistorySource) -> str:
    """Why what was read of the archive may not be what was planned; empty: it is."""
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
    """Another timeline is all that is wrong, and it is proven that it begins behind all that was seen."""
    if _is_elsewhere(now, source) or source.cluster == WENT_BACK or _is_behind(now, source) or _is_another(now, source):
        return False
    return timelines.has_all(connection, now.cluster, source)


def _is_elsewhere(now: Any, source: HistorySource) -> bool:
    return source.cluster not in ("", WENT_BACK) and server(source.cluster) != server(now.cluster)


def _is_another(now: Any, source: HistorySource) -> bool:
    """Where somebody has said how to go on, it is the one that is there now."""
    return bool(source.cluster) and source.oid not in (None, now.archive)


def _is_behind(now: Any, source: HistorySource) -> bool:
    """Ids that come now were given out before: a standby that lagged was promoted, or an older copy put in place."""
    read = [
        _next(snapshot) for snapshot in (source.snapshot, source.snapshot_target, source.events_snapshot) if snapshot
    ]
    return _next(now.snapshot) < max(read, default=0)


def _next(snapshot: str) -> int:
    """The first transaction id that had not been given out."""
    return int(snapshot.split(":")[1])


def server(cluster: str) -> str:
    """Whichever its timeline."""
    return cluster.partition("/")[0]
