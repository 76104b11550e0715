"""The failures of a warning's messages, and what people recorded on each: for Overview and mails."""

from collections.abc import Sequence
from typing import NamedTuple

from pgqueue_admin.alerts.finding import LONGEST
from pgqueue_admin.archive import failure_groups, fingerprints
from pgqueue_admin.archive.failure_groups import OfCause
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Alert, FailureGroup, failure_group
from pgqueue_admin.models.queue_database import queue_database


class Failures(NamedTuple):
    """``fingerprints``: of the dead messages, most frequent first; empty: unknown. ``newest``: they are of only so many
    of the newest messages; 0: of all.
    ``said``: a few failures with recorded notes, latest note first; without fingerprints, of any failure with this
    error.
    """

    fingerprints: Sequence[str] = ()
    said: Sequence[FailureGroup] = ()
    newest: int = 0

    @property
    def only(self) -> str:
        """The only fingerprint of all, or of the newest; empty: several, or unknown."""
        return self.fingerprints[0] if len(self.fingerprints) == 1 else ""


def find(alerts: Sequence[Alert]) -> dict[int, Failures]:
    """Return failures by warning number. If a database is down, return only what is known of the error: the
    page works.
    """
    told = _told([alert for alert in alerts if 0 < len(alert.cause) < LONGEST])
    known = failure_group.said_of_fingerprints({digest for of in told.values() for digest in of.fingerprints})
    by_error: dict[str, list[FailureGroup]] = {}
    for group in failure_group.said_of([alert.cause for alert in alerts if alert.pk not in told]):
        by_error.setdefault(group.exception, []).append(group)
    found = {}
    for alert in alerts:
        digests, newest = told.get(alert.pk, _UNTOLD)
        of_it = [group for digest, group in known.items() if digest in digests][: failure_group.MOST_SAID]
        found[alert.pk] = Failures(digests, of_it if digests else by_error.get(alert.cause, []), newest)
    return found


_UNTOLD = OfCause([], 0)


def _told(alerts: Sequence[Alert]) -> dict[int, OfCause]:
    if not alerts:
        return {}
    try:
        with queue_database().read_session() as connection:
            if not fingerprints.are_kept(connection):
                return {}
            found = failure_groups.of_causes(connection, [(alert.queue, alert.cause) for alert in alerts])
    except DatabaseError:
        return {}
    return {alert.pk: of for alert in alerts if (of := found.get((alert.queue, alert.cause)))}
