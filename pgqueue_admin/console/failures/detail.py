"""One failure: its figures, its deaths over time, what its messages share, what happened before, what was done."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.archive import failure_groups, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.console.failures import comparison, rows, versions
from pgqueue_admin.console.failures.comparison import Comparison
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.console.failures.versions import Versions
from pgqueue_admin.console.messages.detail import archive_rows
from pgqueue_admin.console.messages.detail.summary import STATE_WORDS
from pgqueue_admin.console.overview import activity
from pgqueue_admin.console.overview.activity import RecentChange
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.formatting.numbers import format_int, pluralize
from pgqueue_admin.models import AlertMail, Operation, PostedMark, Process
from pgqueue_admin.models.failure_group import FailureWords
from pgqueue_admin.services.content_access import ContentAccess

SAMPLES = 10
MAILS = 5
QUEUES = 3  # its queues with the most messages: their other messages are compared
OPERATIONS = 8
BEFORE = timedelta(hours=1)  # before the first death: a change in this time may be the cause
AFTER = timedelta(minutes=1)  # clocks of hosts differ
CHANGES = 8
# step in seconds, number of steps, and the words for window and step
WINDOWS = {"1h": (60, 60, "1 h", "minute"), "24h": (1800, 48, "24 h", "half hour"), "7d": (7200, 84, "7 d", "2 hours")}


@dataclass(frozen=True, slots=True)
class Bars:
    """Deaths over time, as SVG rectangles in a drawing 1,000 wide and 76 high."""

    window: str
    word: str
    step: str
    counts: list[int]

    @property
    def most(self) -> int:
        return max(self.counts)

    @property
    def drawn(self) -> SafeString:
        wide, top = 1000 / len(self.counts), max(self.most, 1)
        bars = [(place * wide + 1, 62 * count / top) for place, count in enumerate(self.counts) if count]
        rect = '<rect class="k-dead" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
        return mark_safe("".join(rect.format(at, 76 - height, wide - 2, height) for at, height in bars))

    @property
    def said(self) -> str:
        """The drawing in words."""
        died = sum(self.counts)
        return f"{pluralize(died, 'death')} in {self.word}, at most {format_int(self.most)} in one {self.step}"


@dataclass(frozen=True, slots=True)
class OperationOnGroup:
    number: int
    operation: Operation | None  # None: an operation of another console
    said: str


@dataclass(frozen=True, slots=True)
class FailureDetail:
    """``acted_on``: how many of its dead messages lie in queues that this person may act on."""

    row: FailureRow
    acted_on: int
    bars: Bars
    comparison: Comparison
    versions: Versions
    samples: list[archive_rows.ArchiveRow]
    before: list[RecentChange]
    operations: list[OperationOnGroup]
    mails: list[AlertMail]
    windows: list[tuple[str, str]]

    @property
    def is_sampled(self) -> bool:
        """Whether only some of its messages were compared."""
        return 0 < self.comparison.looked < self.row.figures.dead


def read(
    connection: Connection,
    fingerprint: str,
    known: FailureWords | None,
    now: datetime,
    window: str,
    access: ContentAccess,
) -> FailureDetail | None:
    """None if the archive has none of its messages."""
    figures = failure_groups.group(connection, fingerprint)
    if figures is None:
        return None
    row = rows.one(connection, figures, known, now, access)
    members = failure_groups.members(connection, fingerprint)
    shown = store.page(connection, ArchiveFilter(fingerprint=fingerprint), limit=SAMPLES)
    return FailureDetail(
        row,
        rows.acted_on(connection, [row]),
        _bars(connection, fingerprint, window),
        comparison.compare([] if access.refusal else members, access),
        _versions(connection, row, members, now, access),
        archive_rows.rows(connection, shown.messages, access),
        before(row.first_at, access),
        _operations(failure_groups.operations(connection, fingerprint)),
        mails(row),
        [(name, word) for name, (_, _, word, _) in WINDOWS.items()],
    )


def before(first_at: datetime, access: ContentAccess) -> list[RecentChange]:
    """Settings, operations, deploy marks and process starts of the hour before, the latest first.

    A person with scopes sees only actions on their queues: marks and processes concern the whole installation.
    """
    window = (first_at - BEFORE, first_at + AFTER)
    acts = activity.acts().filter(at__range=window).exclude(noun="failure")[:CHANGES]
    entries = [activity.of_entry(shown_search.entry(entry, access)) for entry in acts]
    if visible_queues.current() is not None:
        return entries
    started = Process.objects.filter(started_at__range=window, role="endpoint").order_by("-started_at")[:CHANGES]
    marks = PostedMark.objects.filter(at__range=window)[:CHANGES]
    found = [*entries, *map(activity.of_mark, marks), *map(_of_start, started)]
    return sorted(found, key=lambda change: change.at, reverse=True)[:CHANGES]


def _versions(
    connection: Connection, row: FailureRow, members: list[Any], now: datetime, access: ContentAccess
) -> Versions:
    """Versions by processes, which concern all queues, only without scopes; by headers, only if headers may be read."""
    processes = [] if visible_queues.current() else versions.at_work(members, row.figures.first_at)
    number = row.figures.all_dead + row.figures.discarded + row.retries
    found = versions.by_processes(members, processes, row.first_at, now, number)
    if access.refusal or not versions.are_named(members, access):
        return found
    queues = list(dict.fromkeys(place.queue for place in row.places))[:QUEUES]
    others = failure_groups.beside(connection, row.figures, queues)
    return replace(found, headers=versions.by_headers(members, others, access), beside=len(others))


def _of_start(process: Process) -> RecentChange:
    version = f" with {process.code_version}" if process.code_version else ""
    return RecentChange(process.started_at, process.host, f"{process.endpoint} began{version}", "play")


def mails(row: FailureRow) -> list[AlertMail]:
    """Mails of warnings about this error in its queues, newest first. A person with scopes sees no mail."""
    if visible_queues.current() is not None:
        return []
    queues = {place.queue for place in row.places}
    about = AlertMail.objects.filter(alert__kind="dead_message", alert__cause=row.cause.exception[:400])
    return list(about.filter(alert__queue__in=queues).select_related("alert")[:MAILS])


def _bars(connection: Connection, fingerprint: str, window: str) -> Bars:
    window = window if window in WINDOWS else "24h"
    step, steps, word, said = WINDOWS[window]
    counts = failure_groups.bars(connection, fingerprint, step, steps)
    return Bars(window, word, said, counts)


def _operations(found: list[Any]) -> list[OperationOnGroup]:
    became: dict[int, list[str]] = {}
    for each in found:
        became.setdefault(each.operation, []).append(
            f"{format_int(each.count)} {STATE_WORDS.get(each.state, each.state).lower()}"
        )
    numbers = list(became)
    if visible_queues.current() is not None:  # operations that reach beyond their scopes are hidden
        numbers = sorted(Operation.objects.filter(pk__in=numbers).values_list("pk", flat=True), reverse=True)
    ours = Operation.objects.in_bulk(numbers[:OPERATIONS])
    return [OperationOnGroup(each, ours.get(each), ", ".join(became[each])) for each in numbers[:OPERATIONS]]
