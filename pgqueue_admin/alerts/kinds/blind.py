"""Most queues, or all, cannot be read: pages show old figures, and other warnings about the queues are frozen.

First step: Read the database's words in the warning; grant SELECT, or bring the database back.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    seen = look.sight
    if seen.is_blind:
        said = warnings.blind(seen.unread, seen.of, seen.why, seen.sqlstate)
        yield Finding("blind", "queues", said, CRITICAL, count=1, told=0, since=seen.since)


KIND = AlertKind("blind", "not read", find, mailed=True, threshold="limit")
