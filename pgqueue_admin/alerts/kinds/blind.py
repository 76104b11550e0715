"""Most queues cannot be read, or none: what pages say of them is old, and other warnings about them stand still."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    seen = look.sight
    if seen.is_blind:
        said = warnings.blind(seen.unread, seen.of, seen.why, seen.sqlstate)
        yield Found("blind", "queues", said, CRITICAL, count=1, told=0, since=seen.since)


KIND = Kind("blind", "not read", find, mailed=True, threshold="limit")
