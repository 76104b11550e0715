"""The HTML of each cell of a row, by name. The page and its live topic share it, so they cannot differ."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.console import components
from pgqueue_admin.console.queue_row import sparklines
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.formatting import durations, numbers, times


def ready(row: QueueRow) -> SafeString:
    return components.figure(row.latest.ready, row.latest.how) if row.latest else _not_yet()


def depth(row: QueueRow) -> SafeString:
    return components.figure(row.latest.depth, row.latest.how) if row.latest else _not_yet()


def in_flight(row: QueueRow) -> SafeString:
    how = row.latest.how if row.latest and row.queue.kind == "lease" else "hint"  # a lock is a fact of its row
    return components.figure(row.latest.in_flight if row.latest else None, how)


def delayed(row: QueueRow) -> SafeString:
    return components.figure(row.latest.delayed, row.latest.delayed_how) if row.latest else components.figure(None)


def expired(row: QueueRow) -> SafeString:
    return components.figure(row.latest.expired, row.latest.how) if row.latest else _not_yet()


def dead(row: QueueRow) -> SafeString:
    count = row.latest.dead if row.latest else None
    said = components.figure(count, row.dead_how)
    return format_html('<b class="crit-t">{}</b>', said) if count else said


def span(row: QueueRow) -> SafeString:
    return components.figure(row.span)


def entering(row: QueueRow) -> SafeString:
    return _rate(row.entering)


def leaving(row: QueueRow) -> SafeString:
    said = _rate(row.leaving, row.leaving_how)
    stuck = row.consumers.nobody and row.waiting
    return format_html('<b class="crit-t">{}</b>', said) if stuck and not row.leaving else said


def oldest(row: QueueRow, still: bool = False) -> SafeString:
    """Age and target with a bullet; the browser moves both on.

    ``still`` leaves the age to the browser, so that an unchanged head is equal in every sample and costs the stream
    nothing.
    """
    target = row.queue.target_age_seconds
    against = format_html(' <span class="faint">/ {}</span>', sparklines.target_words(target))
    if row.age is None or row.latest is None or row.latest.oldest_at is None:
        return format_html('<span class="fig" data-kind="unknown">{}</span>{}', row.no_age, against)
    seconds = 0.0 if still else row.age
    said = age(row.latest.oldest_at, seconds, row.judged_age, row.latest.oldest_how, row.state)
    return format_html("<span>{}{}{}</span>", said, against, sparklines.bullet(seconds, row.judged_age))


def age(since: datetime, seconds: float, target: float | None, how: str, tone: str = "") -> SafeString:
    about = numbers.about(how)
    past = f" {'warn-t' if tone == 'warn' else 'crit-t'}" if target and seconds > target else ""
    return format_html(
        '<b class="age{}" data-since="{}" data-target="{}" data-tone="{}" data-about="{}" data-kind="{}">{}</b>',
        past,
        times.iso(since),
        target or "",
        tone,
        about,
        how,
        about + durations.duration(seconds if seconds < 10 else float(int(seconds))),
    )


def trend(row: QueueRow) -> SafeString:
    tone = {"grows": "crit-t" if row.state == "crit" else "", "empties": "good-t"}.get(row.trend.tone, "")
    return format_html('<span class="{}">{}</span>', tone, row.trend.words)


def consumers(row: QueueRow) -> SafeString:
    said = row.consumers
    return format_html('<span class="{}">{}</span>', "crit-t" if said.tone == "crit" else "", said.words)


def state(row: QueueRow) -> SafeString:
    """The state in words, for people who do not see the bar at the edge."""
    return mark_safe({"crit": " (critical)", "warn": " (warning)", "paused": " (paused)"}.get(row.state, ""))


def strip(row: QueueRow, longest: int) -> SafeString:
    return sparklines.strip(row.make_up, longest)


def spark(row: QueueRow) -> SafeString:
    since = sparklines.share_of_hour(row.breach_since, row.now) if row.breach_since and row.state == "crit" else None
    return sparklines.spark(row.points, row.address.table, since)


def _rate(per_second: float | None, how: str = "counted") -> SafeString:
    kind = "unknown" if per_second is None else how
    return format_html('<span class="fig" data-kind="{}">{}</span>', kind, rate_words(per_second, how))


def rate_words(per_second: float | None, how: str = "counted") -> str:
    """A rate without /s: the column's head has the unit."""
    said = numbers.rate(per_second)
    unit = said.unit.removeprefix("/s")
    return f"{numbers.about(how) if per_second is not None else ''}{said.number}{f' {unit}' if unit else ''}"


def _not_yet() -> SafeString:
    return mark_safe('<span class="fig faint" data-kind="unknown" title="not counted yet">–</span>')


def board(rows: Sequence[QueueRow], most: int) -> SafeString:
    """Names, depths and states in columns, of queues that are not shown above."""
    more = len(rows) - most
    rest = f'<li><a href="{reverse("queues")}">{more:,} more</a></li>' if more > 0 else ""
    return mark_safe(f'<ul class="board">{"".join(_named(row) for row in rows[:most])}{rest}</ul>')


def _named(row: QueueRow) -> str:
    schema = "" if row.address.schema == "public" else f", {row.address.schema}"
    name, zero = (
        components.seen(row.address.table + schema),
        "" if row.latest and row.latest.depth else " z",
    )
    tone = f" {row.state}-t" if row.state else zero
    said = f"{depth(row)}{state(row)}"
    return f'<li><a href="{escape(row.path)}" title="{name}">{name}</a><span class="n{tone}">{said}</span></li>'


Cell = Callable[[QueueRow], SafeString]
CELLS: dict[str, Cell] = {
    "ready": ready,
    "depth": depth,
    "flight": in_flight,
    "delayed": delayed,
    "expired": expired,
    "dead": dead,
    "span": span,
    "in": entering,
    "out": leaving,
    "oldest": oldest,
    "trend": trend,
    "consumers": consumers,
    "word": state,
}


def live(row: QueueRow) -> dict[str, str]:
    """Live updates of a row: its cells by key, and its class."""
    said: dict[str, str] = {f"{row.key}.{name}": cell(row) for name, cell in CELLS.items()}
    said[f"{row.key}.oldest"] = oldest(row, still=True)
    return {**said, f"{row.key}.state": row.state}
