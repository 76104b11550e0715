"""How many mails an hour still takes: in all, and about one queue, so that no flood hides another queue's outage."""

from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Alert, AlertMail, Queue
from pgqueue_admin.models.queue_database import queue_database

CAP, WINDOW = 20, timedelta(hours=1)
SHARE = 5  # of them about one queue, by each kind of warning
_COUNTED = [AlertMail.About.OPENED, AlertMail.About.GREW]  # ends are told to whoever was told of the beginning
Share = tuple[str, str]


class RateLimit:
    """The mails of the last hour, and what may be added to them."""

    def __init__(self, now: datetime):
        recent = AlertMail.objects.filter(about__in=_COUNTED, created_at__gt=now - WINDOW).order_by("created_at")
        self._written: list[tuple[Share, datetime]] = [
            ((kind, queue), at) for kind, queue, at in recent.values_list("alert__kind", "alert__queue", "created_at")
        ]
        self._now = now

    def takes(self, alert: Alert) -> bool:
        """A queue that is looked at has its first critical mail of the hour whatever was written about others."""
        if self.of(alert) >= SHARE:
            return False
        return len(self._written) < CAP or (self.of(alert) == 0 and self._must_be_told(alert))

    def take(self, alert: Alert) -> None:
        self._written.append((share(alert), self._now))

    def of(self, alert: Alert) -> int:
        return sum(written == share(alert) for written, _ in self._written)

    def ends_with(self, alert: Alert) -> str:
        """Said in the mail that was just taken, where it is the last for now: of all, or about its queue."""
        if len(self._written) >= CAP:
            return f"This is the last mail for now: {CAP} an hour are sent at most."
        if self.of(alert) >= SHARE:
            return f"This is the last mail about this queue for now: {SHARE} an hour are sent at most."
        return ""

    def again(self, alert: Alert) -> datetime | None:
        """When a mail about it may be written, if it is held back now."""
        if self.takes(alert):
            return None
        times = [at for written, at in self._written if written == share(alert)]
        full = times[-SHARE:] if len(times) >= SHARE else [at for _, at in self._written][-CAP:]
        return full[0] + WINDOW

    def _must_be_told(self, alert: Alert) -> bool:
        """Anybody may write the name of a queue into a message: of those that are not there, none is let through."""
        return alert.severity == Alert.Severity.CRITICAL and alert.queue in self._there

    @cached_property
    def _there(self) -> set[str]:
        names = Queue.objects.filter(gone_since=None).values_list("schema", "table")
        return {queue_database().dialect.canonical(Address(*name)) for name in names}


def share(alert: Alert) -> Share:
    return alert.kind, alert.queue
