"""C7: the archive holds dead messages, by queue of death and by cause. Their deaths are mailed.

First step: Open the failure, fix its cause, and retry five in stages before the rest.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.dead_message_cursor import DeadGroup
from pgqueue_admin.alerts.display_names import short_cause
from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind, sees_archive
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.formatting.numbers import pluralize


def find(look: AlertSnapshot) -> Iterator[Finding]:
    return (found(look, group) for group in look.lying or [])


def found(look: AlertSnapshot, group: DeadGroup) -> Finding:
    """Critical if the queue has more dead messages than its target."""
    target = look.target_dead(group.queue) or 0
    cause = short_cause(group.cause) if group.cause else pluralize(group.causes, "other cause")
    said = warnings.dead(group.count, cause, target)
    severity = CRITICAL if look.dead_in[group.queue] > target else WARNING
    return Finding(
        "dead_message", group.queue, said, severity, group.cause, group.queue, count=group.count, since=group.first_at
    )


KIND = AlertKind("dead_message", "dead messages", find, can_tell=sees_archive, mailed=True, counts=True)
