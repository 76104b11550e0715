"""Whether messages arrived in another database has been unknown for over 5 min; they are held until it is known.

First step: Restore the connection to that database; if it cannot tell any more, look there and decide on Crossings.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.periodic_looks import CROSSING_LATE
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for row in look.crossings or []:
        if not row.undecided and not row.going:
            continue  # its queues there accepted none of them
        said = warnings.crossing_undecided(
            row.alias, row.undecided, row.going, row.seconds, CROSSING_LATE.total_seconds()
        )
        severity = CRITICAL if row.undecided else WARNING
        yield Finding("crossing_undecided", row.alias, said, severity, since=row.begun_at)


def is_known(look: AlertSnapshot) -> bool:
    return look.crossings is not None


KIND = AlertKind("crossing_undecided", "crossings undecided", find, can_tell=is_known)
