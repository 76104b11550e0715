"""Opens, updates and resolves warnings: one open row per kind, subject and cause."""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection, transaction

from pgqueue_admin.alerts import acknowledgements
from pgqueue_admin.alerts.dead_message_cursor import NewDeaths, OldDeaths
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import KINDS, dead_message, old_deaths
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.models import Alert

SEEN_EVERY = timedelta(seconds=10)  # well below HOVERING
log = logging.getLogger("pgqueue.alerts")
Identity = tuple[str, str, str]
_SAID = ["severity", "queue", "sentence", "meaning", "value", "threshold", "count", "last_seen_at"]


@dataclass
class AlertChanges:
    """Changes of this evaluation; a row that was only seen again is none."""

    opened: list[Alert] = field(default_factory=list)
    resolved: list[Alert] = field(default_factory=list)
    updated: list[Alert] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)  # kinds that could not be evaluated, and why

    def __bool__(self) -> bool:
        return bool(self.opened or self.resolved or self.updated)

    def copy(self) -> "AlertChanges":
        return AlertChanges([*self.opened], [*self.resolved], [*self.updated], {**self.failed})


class Evaluation:
    """One pass over all kinds. The caller holds the transaction, which also moves the cursor."""

    def __init__(self, look: AlertSnapshot, alive: Callable[[], None] = lambda: None):
        self.look, self.alive = look, alive
        self.changes = AlertChanges()
        self.open: dict[Identity, Alert] = {
            (alert.kind, alert.subject, alert.cause): alert for alert in Alert.objects.filter(resolved_at=None)
        }
        self.still: set[Identity] = set()

    def run(self) -> AlertChanges:
        for alert in self.open.values():  # also of kinds without figures now
            self.reopen(alert)
        self.count(self.look.deaths)
        self.pile_up(self.look.piles)
        for kind in KINDS:
            if kind.can_tell(self.look):
                self.judge(kind)
        return self.changes

    def judge(self, kind: AlertKind) -> None:
        """Evaluate a kind. One that fails leaves its warnings unchanged, and does not stop the others."""
        opened, changes = dict(self.open), self.changes
        self.changes = changes.copy()
        try:
            with transaction.atomic():
                self.reconcile(kind)
        except Exception as error:
            if not connection.is_usable():
                raise
            self.open, self.changes = opened, changes
            changes.failed[kind.name] = error

    def count(self, deaths: Iterable[NewDeaths]) -> None:
        """Count new deaths that nobody was notified of. They warn even if already retried."""
        lying = {(group.queue, group.cause): group for group in self.look.lying or []}
        for died in deaths:
            self.alive()
            found = dead_message.found(self.look, lying.get((died.queue, died.cause), died))
            self.still.add(found.identity)
            alert = self.open.get(found.identity) or self.start(found, count=0, told=0)
            alert.count += died.count
            alert.notified_count += died.old
            alert.save(update_fields=["count", "notified_count"])
            self.reopen(alert)

    def pile_up(self, piles: Iterable[OldDeaths]) -> None:
        """Count old deaths without individual warnings: one warning for all from one queue."""
        for pile in piles:
            self.alive()
            identity = old_deaths.found(pile.came_from, pile.count).identity
            alert = self.open.get(identity)
            found = old_deaths.found(pile.came_from, pile.count + (alert.count if alert else 0))
            self.still.add(identity)
            if alert:
                self.update(alert, found)
            else:
                self.start(found, count=found.count, told=0)

    def reconcile(self, kind: AlertKind) -> None:
        for found in kind.find(self.look):
            self.alive()  # thousands of warnings take a while
            self.still.add(found.identity)
            if found.identity in self.open:
                self.update(self.open[found.identity], found)
            else:
                self.start(found, count=found.count, told=found.count if found.told is None else found.told)
        gone = {each: alert for each, alert in self.open.items() if each[0] == kind.name and each not in self.still}
        unknown = kind.unknown(self.look) if gone else ()  # judges each queue, so only once
        for identity, alert in gone.items():
            if self.over(alert, kind, unknown):
                self.resolve(identity)

    def over(self, alert: Alert, kind: AlertKind, unknown: Collection[str]) -> bool:
        if alert.subject in unknown or alert.queue in unknown:
            return False
        if kind.by_samples and self.look.unreadable(alert.queue):
            return False
        return self.look.now - alert.last_seen_at >= kind.linger

    def start(self, found: Finding, count: int, told: int) -> Alert:
        """Open a warning. Messages found dead without their deaths having been read (also restored ones) count as
        notified.
        """
        alert = Alert(
            kind=found.kind,
            subject=found.subject,
            cause=found.cause,
            count=count,
            notified_count=told,
            opened_at=found.since or self.look.now,
        )
        self.open[found.identity] = alert
        self._say(alert, found)
        alert.save()
        self.changes.opened.append(alert)
        log.warning("%s: %s", alert.queue or alert.subject, found.sentence)
        return alert

    def update(self, alert: Alert, found: Finding) -> None:
        seen_before, before = alert.last_seen_at, (alert.sentence, alert.meaning, alert.severity)
        self._say(alert, found)
        changed = (alert.sentence, alert.meaning, alert.severity) != before
        if changed:
            self.changes.updated.append(alert)
        if found.told is not None:
            alert.count = found.count
        if changed or self.look.now - seen_before > SEEN_EVERY:
            alert.save(update_fields=_SAID)
        self.reopen(alert, graver=before[-1] == Alert.Severity.WARNING != alert.severity)

    def reopen(self, alert: Alert, graver: bool = False) -> None:
        """End an acknowledgement that is over, or given before the warning became graver: it notifies again."""
        if alert.acknowledged_at and (graver or acknowledgements.is_over(alert, self.look.now)):
            acknowledgements.lapse(alert)
            self.changes.updated.append(alert)

    def resolve(self, identity: Identity) -> None:
        alert = self.open.pop(identity)
        alert.resolved_at = self.look.now
        alert.save(update_fields=["resolved_at"])
        self.changes.resolved.append(alert)

    def _say(self, alert: Alert, found: Finding) -> None:
        alert.severity, alert.queue = found.severity, found.queue
        alert.sentence, alert.meaning = found.said.fact, found.said.meaning
        alert.value, alert.threshold = found.said.value[:100], found.said.threshold[:100]
        alert.last_seen_at = self.look.now
