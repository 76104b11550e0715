"""The needs-you list: critical warnings that nobody has acknowledged, one row per queue, oldest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from pgqueue_admin.console import navigation, next_steps
from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.records.models import Alert
from pgqueue_admin.records.queues import subject
from pgqueue_admin.records.source import source
from pgqueue_admin.wording import warnings

MOST = 5
OF_PROCESSES = ("worker_crashing", "breaker_open")


@dataclass
class Need:
    """One queue (or endpoint, or process) that needs somebody, with everything that is wrong there."""

    key: str
    where: str
    path: str
    since: datetime | None
    more: int = 0
    step: str = "See the queue"
    step_path: str = ""
    alerts: list[Alert] = field(default_factory=list)  # the gravest first
    judged: Row | None = None  # where no warning has been opened yet

    @cached_property
    def said(self) -> tuple[str, str]:
        """What is wrong, and what it means: put into words for the few that are shown."""
        if self.judged:
            said = _judged(self.judged)
            return said.fact, said.meaning
        first = self.alerts[0]
        return _past_its_target(first.threshold) if first.kind == "queue_age" else first.sentence, first.meaning

    @property
    def fact(self) -> str:
        return self.said[0]

    @property
    def meaning(self) -> str:
        return self.said[1]

    @property
    def has_table(self) -> bool:
        return self.key.startswith("q")

    @property
    def is_queue(self) -> bool:
        """Also one that is no more: what died on the way to it still names it."""
        return self.has_table or any(alert.queue for alert in self.alerts)


def find(alerts: Iterable[Alert], rows: Iterable[Row]) -> list[Need]:
    """All of them: from open warnings, and from queues judged critical for which no warning has been opened yet."""
    rows_by_subject = {subject(row.queue): row for row in rows}
    grouped: dict[str, list[Alert]] = {}
    told = set()
    for alert in alerts:
        told.add(alert.queue)
        if alert.severity == Alert.Severity.CRITICAL and alert.acknowledged_at is None:
            grouped.setdefault(alert.queue or _apart(alert), []).append(alert)
    found = [_told(where, group, rows_by_subject.get(where)) for where, group in grouped.items()]
    _tell_apart(found, {row.address.table for row in rows_by_subject.values()})
    untold = [row for where, row in rows_by_subject.items() if where not in told and row.verdict.state == "critical"]
    return sorted([*found, *map(_untold, untold)], key=_oldest_first)


def _oldest_first(need: Need) -> tuple[bool, float, str]:
    return need.since is None, need.since.timestamp() if need.since else 0.0, need.where


def _told(where: str, alerts: list[Alert], row: Row | None) -> Need:
    alerts.sort(key=lambda alert: (alert.kind != "dead_message", alert.opened_at))
    first = alerts[0]
    path = row.path if row else navigation.path_of("alerts")
    words, step_path = next_steps.of(first) or ("See the queue" if row else "See the warning", path)
    return Need(
        key=row.key if row else f"a{first.pk}",
        where=_short(where) if first.queue else first.subject,
        path=path,
        since=min(alert.opened_at for alert in alerts),
        more=len(alerts) - 1,
        step=words,
        step_path=step_path,
        alerts=alerts,
    )


def _apart(alert: Alert) -> str:
    """By what warnings about no queue are one need: all of an endpoint's processes are."""
    return f"{'processes' if alert.kind in OF_PROCESSES else alert.kind} {alert.subject}"


def _tell_apart(needs: list[Need], tables: set[str]) -> None:
    """An endpoint has its queue's name, which may need somebody, too."""
    for need in needs:
        if need.alerts[0].kind in OF_PROCESSES and need.where in tables:
            need.where = f"endpoint {need.where}"


def _untold(row: Row) -> Need:
    since = row.latest.oldest_at if row.latest else None
    return Need(row.key, row.address.table, row.path, since, step_path=row.path, judged=row)


def _past_its_target(target: str) -> str:
    """The age itself stands at the right and moves there; here it would only flicker."""
    return f"Oldest ready message is past its target of {target}"


def _aged(said: warnings.Said) -> warnings.Said:
    return said._replace(fact=_past_its_target(said.threshold))


def _judged(row: Row) -> warnings.Said:
    """In the words that its warning will have a moment later."""
    value, target = row.verdict.value or 0, row.verdict.target or 0
    if row.verdict.why == "age":
        return _aged(warnings.queue_age(value, target))
    if row.verdict.why == "dead":
        return warnings.dead_count(int(value), int(target), row.dead_how)
    return warnings.queue_depth(int(value), row.latest.how if row.latest else "counted", int(target))


def _short(where: str) -> str:
    try:
        return source().dialect.parse_address(where).table
    except AddressNotUnderstood:
        return where


def address(where: str) -> Address | None:
    try:
        return source().dialect.parse_address(where)
    except AddressNotUnderstood:
        return None
