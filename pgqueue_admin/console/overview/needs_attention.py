"""The needs-you list: one row per queue with a critical warning, blocked queues before backlogs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.urls import reverse

from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.console import navigation, verdicts
from pgqueue_admin.console.alerts import suggested_action
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import escape_invisible, warnings
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Alert
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.queues import subject

MOST = 5  # rows per part
OF_PROCESSES = ("worker_crashing", "circuit_breaker_open")
DEAD = frozenset({"dead_message", "dead_count"})
FOLLOWS = frozenset({"no_consumer", "queue_age", "queue_depth"})  # consequences of messages that are not received
_KINDS = {"age": "queue_age", "dead": "dead_count", "depth": "queue_depth"}  # by the target that is exceeded
SAID_ONCE = frozenset({*DEAD, "queue_depth"})  # their meaning is the same for every queue


@dataclass
class NeedRow:
    """One queue (or endpoint, or process) that needs a person, with all its faults."""

    key: str
    where: str
    path: str
    since: datetime | None
    alerts: list[Alert] = field(default_factory=list)  # the gravest first
    row: QueueRow | None = None  # of an existing queue
    grows: bool = False  # whether it grew within ten minutes
    acknowledged: bool = False  # all of its warnings are
    failures: Failures = suggested_action.UNTOLD  # of the warning that is shown

    @cached_property
    def halted(self) -> Standing | None:
        """The stopped endpoint of the queue, if that is why messages wait."""
        standing = self.row.standing if self.row else None
        return standing if standing and standing.is_cause else None

    @cached_property
    def _told(self) -> list[Alert]:
        """Its warnings without those that follow from the stopped endpoint."""
        return [alert for alert in self.alerts if not (self.halted and alert.kind in FOLLOWS)]

    @cached_property
    def said(self) -> tuple[str, str]:
        """What is wrong, and what it means. Worded lazily, for the few that are shown."""
        if self.halted:
            return verdicts.halted(self.halted), f"{self._told[0].sentence}." if self._told else ""
        if not self.alerts:
            said = _judged(self.row) if self.row else None
            return (
                (said.fact, _own(_KINDS.get(self.row.verdict.why, ""), said.meaning)) if self.row and said else ("", "")
            )
        first = self.alerts[0]
        fact = _past_its_target(first.threshold) if first.kind == "queue_age" else first.sentence
        return f"{fact}; growing" if self.grows else fact, _own(first.kind, first.meaning)

    @property
    def fact(self) -> str:
        return self.said[0]

    @property
    def meaning(self) -> str:
        return self.said[1]

    @property
    def step(self) -> tuple[str, str]:
        """The next step: its words, and where they lead."""
        known = suggested_action.of(self.alerts[0], self.failures) if self.alerts and not self.halted else None
        return known or ("See the queue" if self.row else "See the warning", self.path)

    @property
    def more(self) -> int:
        """Number of warnings beside the one that is shown."""
        return max(0, len(self._told) - 1)

    @property
    def start_path(self) -> str:
        """Where its endpoint is started; empty for a person who may only look at its queue."""
        if self.halted is None:
            return ""
        endpoint = self.halted.endpoint
        refused = queue_access.refusal_for(Address(endpoint.schema, endpoint.table))
        return "" if refused else reverse("endpoint_start", args=[endpoint.name])

    @property
    def numbers(self) -> str:
        """Ids of the warnings that an acknowledgement covers: ``3,8``; empty while none is open."""
        return ",".join(str(alert.pk) for alert in self.alerts)

    @property
    def question(self) -> str:
        return f"Acknowledge {pluralize(len(self.alerts), 'warning')} of {escape_invisible.plain(self.where)}?"

    @property
    def value(self) -> str:
        """The fault in one word, for the grey board."""
        return self.alerts[0].value if self.alerts else ""

    @property
    def has_table(self) -> bool:
        return self.key.startswith("q")

    @property
    def is_queue(self) -> bool:
        """Whether it is a queue, also one that is gone: warnings of messages that died on the way still name it."""
        return self.has_table or any(alert.queue for alert in self.alerts)

    @property
    def counts_dead(self) -> bool:
        return any(alert.kind in DEAD for alert in self.alerts)

    @property
    def advice(self) -> str:
        """Advice that the list gives once for all its rows; empty if there is none."""
        first = self.alerts[0] if self.alerts and not self.halted else None
        if first and first.kind == "queue_age":
            return "Where the oldest is past its target, see who receives; raise concurrency or start a process."
        return first.meaning if first and first.kind in SAID_ONCE else ""

    @property
    def _takes_nobody(self) -> bool:
        return self.halted is not None or any(alert.kind == "no_consumer" for alert in self.alerts)

    @property
    def _size(self) -> int:
        """How many messages it is about."""
        if self.row is None or self.row.latest is None:
            return sum(alert.count for alert in self.alerts)
        lying = (self.row.latest.dead or 0) if self.counts_dead or not self.alerts else 0
        return lying + self.row.waiting

    @property
    def order(self) -> tuple[bool, int, float, str]:
        """Sort key: blocked queues before backlogs, then the larger, then the newest."""
        return not self._takes_nobody, -self._size, -(self.since.timestamp() if self.since else 0.0), self.where

    def is_new(self, since: datetime) -> bool:
        """Whether it grew, or another warning began, since then; without any warning yet it is new."""
        return self.grows or not self.alerts or max(alert.opened_at for alert in self.alerts) > since

    def begin_with_new(self, since: datetime) -> None:
        """Put the warnings that make it new first, before long-open ones."""
        newer = [alert for alert in self.alerts if alert.opened_at > since]
        if newer and not self.grows:
            self.alerts = [*newer, *(alert for alert in self.alerts if alert not in newer)]
            if not self.halted:
                self.since = min(alert.opened_at for alert in newer)


class ShownNeeds(NamedTuple):
    """The parts as the page shows them. ``since``: the visit after which a need is new."""

    new: list[NeedRow]
    older: list[NeedRow]
    acknowledged: list[NeedRow]
    since: datetime

    @property
    def open(self) -> list[NeedRow]:
        return [*self.new, *self.older]


def parts(needs: Iterable[NeedRow], since: datetime) -> ShownNeeds:
    found = sorted(needs, key=lambda need: need.order)
    unknown = [need for need in found if not need.acknowledged]
    new = [need for need in unknown if need.is_new(since)]
    for need in new:
        need.begin_with_new(since)
    older = [need for need in unknown if not need.is_new(since)]
    return ShownNeeds(new, older, [need for need in found if need.acknowledged], since)


def find(alerts: Iterable[Alert], rows: Iterable[QueueRow]) -> list[NeedRow]:
    """All needs: from open warnings, and from critical or blocked queues that have no warning yet."""
    rows_by_subject = {subject(row.queue): row for row in rows}
    grouped: dict[str, list[Alert]] = {}
    told = set()
    for alert in alerts:
        told.add(alert.queue)
        if alert.severity == Alert.Severity.CRITICAL:
            grouped.setdefault(alert.queue or _apart(alert), []).append(alert)
    found = [_told(where, group, rows_by_subject.get(where)) for where, group in grouped.items()]
    _tell_apart(found, {row.address.table for row in rows_by_subject.values()})
    unsaid = [row for where, row in rows_by_subject.items() if _is_untold(row, where in told, where in grouped)]
    return [*found, *map(_untold, unsaid)]


def _is_untold(row: QueueRow, told: bool, critical: bool) -> bool:
    held_up = row.standing is not None and row.standing.is_cause and not critical
    return held_up or (not told and row.verdict.state == "critical")


def _told(where: str, alerts: Sequence[Alert], row: QueueRow | None) -> NeedRow:
    unknown = [alert for alert in alerts if alert.acknowledged_at is None]
    shown = sorted(unknown or alerts, key=lambda alert: (alert.kind != "dead_message", alert.opened_at))
    first = shown[0]
    path = row.path if row else navigation.path_of("alerts")
    halted_at = row.standing.at if row and row.standing and row.standing.is_cause else None
    return NeedRow(
        key=row.key if row else f"a{first.pk}",
        where=_short(where) if first.queue else first.subject,
        path=path,
        since=halted_at or min(alert.opened_at for alert in shown),
        alerts=shown,
        row=row,
        grows=_grows(row, shown),
        acknowledged=not unknown,
    )


def _grows(row: QueueRow | None, alerts: Collection[Alert]) -> bool:
    """Whether more arrives than leaves. Growth of the dead is measured apart (``note_growth``)."""
    return row is not None and row.trend.tone == "grows" and any(alert.kind in FOLLOWS for alert in alerts)


def _apart(alert: Alert) -> str:
    """The group of a warning about no queue: all of an endpoint's processes are one need."""
    return f"{'processes' if alert.kind in OF_PROCESSES else alert.kind} {alert.subject}"


def _tell_apart(needs: list[NeedRow], tables: set[str]) -> None:
    """Mark an endpoint that has the name of a queue."""
    for need in needs:
        if need.alerts[0].kind in OF_PROCESSES and need.where in tables:
            need.where = f"endpoint {need.where}"


def _untold(row: QueueRow) -> NeedRow:
    since = row.standing.at if row.standing and row.standing.is_cause else row.latest.oldest_at if row.latest else None
    return NeedRow(row.key, row.address.table, row.path, since, row=row)


def note_growth(needs: Iterable[NeedRow], dead_then: dict[int, int]) -> None:
    """``dead_then``: how many were dead ten minutes ago, by queue."""
    for need in needs:
        if need.row and need.row.latest and need.counts_dead and not need.acknowledged:
            before, now = dead_then.get(need.row.queue.pk), need.row.latest.dead
            need.grows = need.grows or (before is not None and now is not None and now > before)


def advice(needs: Iterable[NeedRow]) -> list[str]:
    """Advice for several needs, each one once."""
    return list(dict.fromkeys(need.advice for need in needs if need.advice))


def _own(kind: str, meaning: str) -> str:
    """The meaning without the advice that the list gives once: of an old head only the rates remain."""
    if kind == "queue_age":
        return f"{meaning.partition('. See ')[0]}."
    return "" if kind in SAID_ONCE else meaning


def _past_its_target(target: str) -> str:
    """The age itself is at the right and is updated there; here it would only flicker."""
    return f"Oldest ready message is past its target of {target}"


def _aged(said: warnings.WarningText) -> warnings.WarningText:
    return said._replace(fact=_past_its_target(said.threshold))


def _judged(row: QueueRow) -> warnings.WarningText:
    """The fault in the words of its warning, which follows a moment later."""
    value, target = row.verdict.value or 0, row.verdict.target or 0
    if row.verdict.why == "age":
        return _aged(warnings.queue_age(value, target))
    if row.verdict.why == "dead":
        return warnings.dead_count(int(value), int(target), row.dead_how)
    return warnings.queue_depth(int(value), row.latest.how if row.latest else "counted", int(target))


def _short(where: str) -> str:
    try:
        return queue_database().dialect.parse_address(where).table
    except AddressUnreadable:
        return where


def address(where: str) -> Address | None:
    try:
        return queue_database().dialect.parse_address(where)
    except AddressUnreadable:
        return None
