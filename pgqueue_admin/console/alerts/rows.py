"""Rows and counts of the Warnings pages, who was notified, and whether the alerter runs."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.alerts import acknowledgements, display_names, failures_of
from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.alerts.kinds import BY_NAME, KINDS
from pgqueue_admin.alerts.mail import mail_settings
from pgqueue_admin.alerts.mail.policy import RateLimit
from pgqueue_admin.console import components, pagination
from pgqueue_admin.console.alerts import suggested_action
from pgqueue_admin.console.parsing import parse_ints
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.formatting import names, times
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models import Alert, AlertMail, Process, database_clock, processes

STATES = {
    "open": Q(resolved_at=None, acknowledged_at=None),
    "acknowledged": Q(resolved_at=None) & ~Q(acknowledged_at=None),
    "resolved": ~Q(resolved_at=None),
}
WORDS = {
    "screen": mark_safe("screen and log"),
    "before": mark_safe("not mailed: older than this console"),
    "nobody": mark_safe("nobody yet"),
}
PAGE = 50
MOST = 200  # warnings that one page follows, when grouped by queue


class AlertKey(NamedTuple):
    """Where a page of warnings ends: resolved ones by their end, others by their beginning."""

    severity: str
    at: datetime
    number: int


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One warning as a row of the table."""

    alert: Alert
    now: datetime
    held_until: datetime | None = None
    failures: Failures = suggested_action.UNTOLD

    @property
    def title(self) -> str:
        kind = BY_NAME.get(self.alert.kind)
        return kind.title if kind else self.alert.kind

    @property
    def opens_again(self) -> str:
        return opens_again(self.alert)

    @property
    def address(self) -> Address | None:
        return display_names.page_of(self.alert)

    @property
    def where(self) -> str:
        return display_names.where(self.alert)

    @property
    def next_step(self) -> tuple[str, str] | None:
        return suggested_action.of(self.alert, self.failures)

    @property
    def tone(self) -> str:
        if self.alert.resolved_at or self.alert.acknowledged_at:
            return ""
        return {"critical": "crit", "warning": "warn"}.get(self.alert.severity, "")

    @property
    def lasted(self) -> float:
        return max(0.0, float(int(((self.alert.resolved_at or self.now) - self.alert.opened_at).total_seconds())))

    def live(self) -> dict[str, str]:
        """Inner HTML by the key of its element."""
        said = {"value": self.alert.value, "sentence": self.alert.sentence, "told": self.told}
        return {f"alert.{self.alert.pk}.{key}": conditional_escape(text) for key, text in said.items()}

    @property
    def told(self) -> SafeString:
        """Who was notified and when, or why nobody was."""
        mails, kind = list(self.alert.mails.all()), BY_NAME.get(self.alert.kind)
        if mails:
            return _mailed(mails)
        if kind is None or not kind.mailed:
            return WORDS["screen"]
        if self.alert.count <= self.alert.notified_count:
            return WORDS["before"]
        return (
            format_html("held back until {}", components.when(self.held_until)) if self.held_until else WORDS["nobody"]
        )


def _mailed(mails: list[AlertMail]) -> SafeString:
    last = mails[-1]
    if last.state != AlertMail.State.SENT:
        return format_html("mail to {} {}", ", ".join(last.left), "failed, tried again" if last.error else "waits")
    at = [components.when(mail.sent_at) for mail in mails if mail.sent_at]
    when = components.joined(at[:1] + at[1:][-1:], " and ")
    if not mail_settings.configured().server:
        return format_html("written to disk, {} (no mail server set)", when)
    return format_html("{}, {}", last.to, when)


def in_state(state: str, after: AlertKey | None = None) -> QuerySet[Alert]:
    """Most severe first, then newest; resolved ones by when they ended."""
    found, when = Alert.objects.filter(STATES[state]), "resolved_at" if state == "resolved" else "opened_at"
    if after:
        later = Q(**{f"{when}__lt": after.at}) | Q(**{when: after.at}, id__lt=after.number)
        less_grave = Q(severity__gt=after.severity)  # "critical" sorts before "warning" in the alphabet, too
        found = found.filter(later if state == "resolved" else less_grave | Q(severity=after.severity) & later)
    order = [f"-{when}", "-id"] if state == "resolved" else ["severity", f"-{when}", "-id"]
    return found.order_by(*order).prefetch_related(Prefetch("mails", AlertMail.objects.order_by("id")))


def key_of(cursor: str | None) -> AlertKey | None:
    """The key of the previous page's last row; None for an invalid cursor."""
    key = pagination.unpack(cursor)
    if not key or [type(each) for each in key] != [str, str, int] or key[0] not in Alert.Severity.values:
        return None
    try:
        at = parse_datetime(key[1])
        return AlertKey(key[0], at.astimezone(UTC), key[2]) if at and at.tzinfo else None
    except (ValueError, OverflowError):  # a thirteenth month; a year outside UTC's range
        return None


def cursor_after(alert: Alert) -> str:
    return pagination.pack(alert.severity, (alert.resolved_at or alert.opened_at).isoformat(), alert.pk)


def rows(alerts: Iterable[Alert], *, leading_on: bool = True) -> list[AlertRow]:
    """``leading_on``: also find the failures of dead messages, which the archive holds."""
    now, found = database_clock.now(), list(alerts)
    ration = RateLimit(now)
    died = [alert for alert in found if alert.kind == "dead_message"] if leading_on else []
    failures = failures_of.find(died) if died else {}
    return [
        AlertRow(alert, now, ration.again(alert), failures.get(alert.pk, suggested_action.UNTOLD)) for alert in found
    ]


@dataclass(frozen=True)
class AlertCounts:
    """The number of warnings by state, and the sentence that opens the page."""

    open: int
    critical: int
    acknowledged: int
    resolved_today: int
    mails_today: int

    @property
    def state(self) -> str:
        return "crit" if self.critical else "warn" if self.open else "good"

    @property
    def verdict(self) -> str:
        can_wait = self.open - self.critical
        if not self.open:
            return "Nothing open" + (f", {self.acknowledged} acknowledged" if self.acknowledged else "")
        if not self.critical:
            return f"Nothing is critical; {can_wait} can wait"
        return f"{self.open} open: {self.critical} critical" + (f", {can_wait} can wait" if can_wait else "")

    @cached_property
    def kinds(self) -> int:
        return len(KINDS)


def counts() -> AlertCounts:
    today = timezone.localtime(database_clock.now()).replace(hour=0, minute=0, second=0, microsecond=0)
    found = Alert.objects.filter(Q(resolved_at=None) | Q(resolved_at__gte=today)).aggregate(
        open=Count("pk", filter=STATES["open"]),
        critical=Count("pk", filter=STATES["open"] & Q(severity="critical")),
        acknowledged=Count("pk", filter=STATES["acknowledged"]),
        resolved_today=Count("pk", filter=STATES["resolved"]),
    )
    return AlertCounts(**found, mails_today=AlertMail.objects.filter(created_at__gte=today).count())


def last_closed() -> datetime | None:
    return (
        Alert.objects.exclude(resolved_at=None).order_by("-resolved_at").values_list("resolved_at", flat=True).first()
    )


def nobody_watches() -> str:
    """Since when the alerter has not reported, as a sentence; "" while it reports."""
    now = database_clock.now()
    if processes.heard_of().filter(role="alerter").exists():
        return ""
    last = Process.objects.filter(role="alerter").order_by("-heartbeat_at").first()
    silent = duration(int((now - last.heartbeat_at).total_seconds())) if last else ""
    since = f"has not reported for {silent}" if last else "never ran here"
    return (
        f"The alerter {since}. The warnings below are out of date, and no mail is sent. Start it: manage.py supervise."
    )


def live(zone: str) -> dict[str, str]:
    """Topic ``alerts:Europe/Berlin``: the counts.

    The zone is the viewer's: their today begins at their midnight.
    """
    with timezone.override(times.zone(zone)):
        found = counts()
    return {
        "alerts.open": str(found.open),
        "alerts.acknowledged": str(found.acknowledged),
        "alerts.resolved": str(found.resolved_today),
        "alerts.mails": str(found.mails_today),
        **components.live_verdict("alerts.verdict", found.state, found.verdict),
        "@title": found.verdict,
    }


def shown(said: str) -> str | None:
    """The numbers of the warnings on a page."""
    return parse_ints(said, MOST)


def live_rows(numbers: str) -> dict[str, str]:
    """Topic ``warnings:3,8,12``: value, sentence and notifications of the open warnings on a page."""
    said: dict[str, str] = {}
    for row in rows(in_state("open").filter(pk__in=numbers.split(",")), leading_on=False):
        said |= row.live()
    return said


def acknowledged(alert: Alert) -> str:
    """The result of acknowledging a warning: which one, and until when."""
    what = f"{display_names.where(alert)}, {alert.sentence}"
    return f"Acknowledged: {what}. Shown grey; a mail is sent only when it ends. {opens_again(alert)}".rstrip()


def acknowledged_all(numbers: Collection[int]) -> str:
    """The same for several warnings."""
    done = list(Alert.objects.filter(pk__in=numbers))
    if len(done) == 1:
        return acknowledged(done[0])
    where = names.listed(list(dict.fromkeys(display_names.where(alert) for alert in done)))
    return f"Acknowledged: {where}, {len(done):,} warnings. They are grey now, and only their ends are mailed."


def opens_again(alert: Alert) -> str:
    """When an acknowledgement ends by itself, as a sentence."""
    until = alert.acknowledged_until
    ends = [times.sentence(until, timezone.get_current_timezone())] if until else []
    if (most := acknowledgements.opens_again_at(alert)) is not None:
        ends.append(f"at {most:,} counted (now {alert.count:,})")
    if alert.severity == Alert.Severity.WARNING:
        ends.append("when it becomes critical")
    return f"Opens again {' or '.join(ends)}." if ends else ""
