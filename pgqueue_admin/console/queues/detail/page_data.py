"""Everything that the page of one queue shows, from our records; its own part reads the queue itself later."""

from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.console import components, navigation, url_converters, verdicts
from pgqueue_admin.console.alerts import rows as alert_rows
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.console.queue_row.sparklines import target_words
from pgqueue_admin.console.workers import rows as process_rows
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.formatting.numbers import AT_LEAST, NOT_SEEN
from pgqueue_admin.models import (
    Alert,
    AuditEntry,
    Endpoint,
    MinimumTtbr,
    Queue,
    endpoint_standings,
    ingest_status,
    processes,
    settings_words,
)
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.queue_database import sees_locked_rows, write_refusal
from pgqueue_admin.models.queue_overview import Newest
from pgqueue_admin.services import queues
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.queues import subject

HISTORY = 10
BY_HAND = ("publish", "release", "end")  # of messages of the lease queue
WARNINGS = 3  # shown unfolded


@dataclass(frozen=True, slots=True)
class QueueFigure:
    name: str
    word: str
    value: SafeString
    detail: SafeString
    tone: str = ""


@dataclass
class QueueData:
    queue: Queue

    @cached_property
    def row(self) -> queue_rows.QueueRow:
        teams = processes.by_endpoint([self.queue.endpoint] if self.queue.endpoint else [])
        return queue_rows.load([self.queue], endpoint_standings.of(teams), self.alerts)[0]

    @property
    def address(self) -> Address:
        return self.row.address

    @property
    def canonical(self) -> str:
        return subject(self.queue)

    @property
    def history_path(self) -> str:
        """Trends of its endpoint, which include successes, or of the queue itself."""
        asked = {"endpoint": self.queue.endpoint} if self.queue.endpoint else {"queue": self.canonical}
        return f"{reverse('trends')}?{urlencode(asked)}"

    @cached_property
    def alerts(self) -> list[Alert]:
        """Open warnings of this queue, the grave ones first."""
        found = Alert.objects.filter(queue=self.canonical, resolved_at=None)
        return sorted(found, key=lambda alert: (alert.severity != "critical", alert.opened_at))

    @property
    def warnings(self) -> list[alert_rows.AlertRow]:
        return [alert_rows.AlertRow(alert, self.row.now) for alert in self._told[:WARNINGS]]

    @cached_property
    def more_warnings(self) -> list[alert_rows.AlertRow]:
        return [alert_rows.AlertRow(alert, self.row.now) for alert in self._told[WARNINGS:]]

    @cached_property
    def _told(self) -> list[Alert]:
        """Open warnings; without no_consumer if the endpoint is halted: the page says so above, and by whom."""
        return [alert for alert in self.alerts if not (self.halted and alert.kind == "no_consumer")]

    @cached_property
    def endpoint(self) -> Endpoint | None:
        return Endpoint.objects.filter(schema=self.queue.schema, table=self.queue.table).first()

    @cached_property
    def ingest_trouble(self) -> str:
        """Why it is not moved into the archive although that is switched on."""
        return ingest_status.trouble(self.address) if self.queue.ingest else ""

    @cached_property
    def delayed_address(self) -> Address | None:
        """The table in which its endpoint keeps delayed messages, if any."""
        named = Queue.objects.filter(schema=self.queue.schema, table=f"{self.queue.table}.Delayed", kind="delayed")
        found = named.first()
        return Address(found.schema, found.table) if found else None

    @cached_property
    def write_refusal(self) -> str:
        return write_refusal(self.address)

    @property
    def title(self) -> str:
        """The title of its page."""
        word = {"crit": "critical", "paused": "paused"}.get(self.row.state)
        return f"{self.row.address.table}, {word}" if word else self.row.address.table

    @property
    def halted(self) -> tuple[Standing, SafeString, process_rows.EndpointHalt] | None:
        """The standing of our endpoint, in words, and the act that resumes it; None while it receives."""
        standing = self.row.standing
        halt = process_rows.halted(standing.team) if standing and standing.state in verdicts.HALTED else None
        return (standing, verdicts.halted(standing), halt) if standing and halt else None

    @property
    def state(self) -> SafeString:
        return state(self)

    @property
    def dead_path(self) -> str:
        """The archive's page of messages that died in this queue."""
        has_some = navigation.path_of("archive") and not self.write_refusal
        return url_converters.dead(self.canonical) if has_some else ""

    @property
    def history(self) -> list[AuditEntry]:
        about = AuditEntry.objects.filter(noun="queue", subject=self.canonical)
        if self.is_lease:
            about = about | AuditEntry.objects.filter(noun="message", subject=self.canonical, verb__in=BY_HAND)
        if self.endpoint:
            about = about | AuditEntry.objects.filter(noun="endpoint", subject=self.endpoint.name)
        return list(about.order_by("-id")[:HISTORY])

    @cached_property
    def shortest_ttbr(self) -> MinimumTtbr | None:
        return self.queue.ttbrs.order_by("ttbr_ms").first()

    @property
    def targets(self) -> list[tuple[str, str, AuditEntry | None]]:
        """Each with its value and its last change; None: unchanged since the queue was found."""
        changes = list(queues.history(self.queue))
        said = []
        for name in ("target_age_seconds", "target_depth", "target_dead"):
            last = next((entry for entry in changes if name in (entry.after or {})), None)
            value = settings_words.value(name, getattr(self.queue, name))
            said.append((settings_words.label(name).capitalize(), value, last))
        return said

    @property
    def figures(self) -> list[QueueFigure]:
        found = [figure(self) for figure in _FIGURES]
        return [_of_lease(each) for each in found] if self.is_lease else found

    @property
    def why_no_acts(self) -> str:
        """Why messages that wait here cannot be acted on; empty if they can."""
        if self.is_lease:
            return acts_allowed.no_lease_queue(self.address)
        is_ours = self.endpoint is not None and self.endpoint.ours
        return "" if is_ours or self.queue.acts_allowed else acts_allowed.not_allowed(self.address)

    @property
    def is_lease(self) -> bool:
        return self.queue.kind == "lease"


def state(view: QueueData) -> SafeString:
    """The word beside the name; empty while the queue is within its targets and without warnings."""
    word = (
        "gone"
        if view.queue.gone_since
        else {"crit": "critical", "warn": "warning", "paused": "paused"}.get(view.row.state, "")
    )
    return components.state(word) if word else mark_safe("")


def _ready(view: QueueData) -> QueueFigure:
    latest = view.row.latest
    target = view.queue.target_depth
    past = bool(target is not None and latest and (latest.depth or 0) > target)
    detail = _HOW.get(latest.how, latest.how) if latest else "not counted yet"
    against = f", target {target:,}" if target is not None else ""
    return QueueFigure(
        "ready", "Ready", cells.ready(view.row), format_html("{}{}", detail, against), "hot" if past else ""
    )


_HOW = {
    "counted": "counted",
    "capped": "at least so many; counting stops there",
    "estimate": "estimated from the seq range",
}


def _text(said: str) -> SafeString:
    return format_html("{}", said)


def _in_flight(view: QueueData) -> QueueFigure:
    latest = view.row.latest
    untold = latest is not None and latest.ready is not None and latest.in_flight is None
    seen = sees_locked_rows(view.address)
    unknown = "not known here: among the ready" if seen else "not known here: locked rows are not seen, nor counted"
    detail = unknown if untold else "a hint, read without locks"
    return QueueFigure("flight", "In flight", cells.in_flight(view.row), _text(detail))


def _delayed(view: QueueData) -> QueueFigure:
    latest = view.row.latest
    due, count = (latest.next_due_at, latest.delayed) if latest else (None, None)
    if count is None and view.queue.kind != "delayed" and not view.delayed_address:
        count = 0  # it has no delayed table
    detail = components.soonest(due, count, view.row.now, "nothing waits for a time")
    return QueueFigure("delayed", "Delayed", cells.delayed(view.row), detail)


def _expired(view: QueueData) -> QueueFigure:
    ttbr = view.shortest_ttbr
    detail = f"shortest TTBR {plain(ttbr.ttbr_ms / 1000)}" if ttbr else "dropped when received"
    return QueueFigure("expired", "Expired", cells.expired(view.row), _text(detail))


def _oldest(view: QueueData) -> QueueFigure:
    row = view.row
    target = view.queue.target_age_seconds
    against = format_html("target {}", target_words(target))
    if row.age is None or row.latest is None or row.latest.oldest_at is None:
        unseen = ", since when cannot be seen" if row.no_age == NOT_SEEN else ""
        return QueueFigure("oldest", "Oldest ready", _text(row.no_age), format_html("{}{}", against, unseen))
    said = cells.age(row.latest.oldest_at, row.age, row.judged_age, row.latest.oldest_how, row.state)
    past = row.judged_age is not None and row.age > row.judged_age
    if row.latest.oldest_how == AT_LEAST:
        against = format_html("{}, since before {}", against, components.when(row.latest.oldest_at))
    return QueueFigure("oldest", "Oldest ready", said, against, "hot" if past else "")


def _in(view: QueueData) -> QueueFigure:
    value = view.row.entering
    detail = "sent to it" if value is not None else "not known"
    return QueueFigure("in", "In", components.rate(value), _text(detail))


def _out(view: QueueData) -> QueueFigure:
    row = view.row
    detail = row.trend.words if row.trend.tone == "empties" else _does_not_empty(row) or row.trend.words
    return QueueFigure("out", "Out", components.rate(row.leaving, row.leaving_how), _text(detail))


def _does_not_empty(row: queue_rows.QueueRow) -> str:
    return "does not empty at this rate" if row.trend.tone == "grows" and row.waiting else ""


_FIGURES = (_ready, _in_flight, _delayed, _expired, _oldest, _in, _out)
# words for the lease queue, and details where they differ from those of a transport queue
_LEASE_WORDS = {
    "ready": ("Waiting", ""),
    "flight": ("Locked", "until their locks end"),
    "delayed": ("Released for later", ""),
    "expired": ("Expired locks", "ended by supervisor, workers or beat"),
    "oldest": ("Oldest waiting", ""),
    "in": ("In", "published to it"),
}


def _of_lease(figure: QueueFigure) -> QueueFigure:
    word, detail = _LEASE_WORDS.get(figure.name, (figure.word, ""))
    return replace(figure, word=word, detail=_text(detail) if detail else figure.detail)


def live(number: str) -> dict[str, str]:
    """Topic ``queue:12``."""
    queue = Queue.objects.select_related("latest").filter(pk=parse_int(number) or 0).first()
    if queue is None:
        return {}
    view = QueueData(queue)
    said: dict[str, str] = {}
    for figure in view.figures:
        said |= {f"now.{figure.name}": figure.value, f"now.{figure.name}.more": figure.detail}
        said[f"now.{figure.name}.tone"] = figure.tone
    latest = view.row.latest
    if latest and latest.oldest_at and view.row.age is not None:  # the browser advances the age
        said["now.oldest"] = cells.age(latest.oldest_at, 0.0, view.row.judged_age, latest.oldest_how, view.row.state)
    return {
        **said,
        "@title": escape_invisible.plain(view.title),
        "now.state": state(view),
        **_ends(latest),
        "now.consumers": cells.consumers(view.row),
        "now.dead": cells.dead(view.row),
        "@point": _point(view.row),
    }


def _ends(latest: Newest | None) -> dict[str, str]:
    """Seq of head and tail: a page then knows which of its rows have left, and whether more have arrived."""
    if latest is None or latest.error:
        return {}
    empty = latest.head_seq is None and not latest.depth
    return {"@head": "Infinity" if empty else str(latest.head_seq or ""), "@tail": str(latest.tail_seq or "")}


def _point(row: queue_rows.QueueRow) -> str:
    """The newest sample for the charts: instant, then the figures in the order of series.NAMES but the last."""
    latest = row.latest
    if latest is None:
        return ""
    values = (
        latest.ready,
        latest.in_flight,
        latest.delayed,
        latest.expired,
        latest.in_per_second,
        latest.out_per_second,
    )
    said = ("" if value is None else f"{value:g}" for value in values)
    return f"{latest.at.timestamp():.0f},{','.join(said)}"
