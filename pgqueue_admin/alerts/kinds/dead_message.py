"""C7: messages lie dead in the archive, by the queue they died in and by cause. Deaths of these are mailed."""

from collections.abc import Iterator

from pgqueue_admin.alerts.archive_reader import Group
from pgqueue_admin.alerts.found import CRITICAL, WARNING, Found
from pgqueue_admin.alerts.kinds.kind import Kind, sees_archive
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.alerts.places import short_cause
from pgqueue_admin.wording import warnings
from pgqueue_admin.wording.figures import counted


def find(look: Look) -> Iterator[Found]:
    return (found(look, group) for group in look.lying or [])


def found(look: Look, group: Group) -> Found:
    """Critical once the queue holds more dead than its target accepts."""
    target = look.target_dead(group.queue) or 0
    cause = short_cause(group.cause) if group.cause else counted(group.causes, "other cause")
    said = warnings.dead(group.count, cause, target)
    severity = CRITICAL if look.dead_in[group.queue] > target else WARNING
    return Found(
        "dead_message", group.queue, said, severity, group.cause, group.queue, count=group.count, since=group.first_at
    )


KIND = Kind("dead_message", "dead messages", find, can_tell=sees_archive, mailed=True, counts=True)
