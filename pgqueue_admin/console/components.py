"""The small parts pages are made of, as safe HTML: figures, times, names, icons. Tags and live cells share them."""

from datetime import datetime

from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.formatting import durations, escape_invisible, names, numbers, times
from pgqueue_admin.models import database_clock

ICON_OF_STATE = {
    "critical": "crit", "warning": "warn", "ok": "ok", "running": "play", "paused": "pause", "dead": "dead",
    "stale": "clock", "retried": "back", "discarded": "quiet", "succeeded": "ok", "frozen": "clock",
    "starting": "clock", "waiting": "clock", "draining": "down", "back-off": "warn", "crashed": "crit", "lost": "crit",
    "stopped": "quiet", "done": "ok", "cancelled": "quiet", "lapsed": "quiet", "expired": "clock", "gone": "quiet",
    "delayed": "clock", "overdue": "warn", "new": "new", "growing": "grow", "back": "back", "quiet": "quiet",
    "unknown": "ask", "failed": "warn", "skipped": "quiet", "picked": "in",
}  # fmt: skip
CLASS_OF_STATE = {
    "critical": "crit", "warning": "warn", "ok": "good", "running": "good", "dead": "crit", "crashed": "crit",
    "lost": "crit", "back-off": "warn", "succeeded": "good", "done": "good", "retried": "info",
    "overdue": "warn", "new": "solid", "growing": "crit", "back": "warn",
    "failed": "warn",
}  # fmt: skip

SHAPE_OF_VERDICT = {"crit": "crit", "warn": "warn", "paused": "pause", "blind": "clock"}


def unknown() -> SafeString:
    return mark_safe(numbers.UNKNOWN)


def figure(value: int | None, how: str = "counted") -> SafeString:
    """A count that carries how it is known; a shortened one keeps its digits in the title."""
    value = None if value == "" else value  # what a template does not find, such as a sample not yet taken
    said = numbers.format_figure(value, how or "counted")
    if value is None:
        return mark_safe(f'<span class="fig" data-kind="unknown">{said}</span>')
    title = f' title="{value:,}"' if abs(value) >= 1_000_000 and f"{value:,}" not in said else ""
    return mark_safe(f'<span class="fig" data-kind="{how or "counted"}"{title}>{said}</span>')


def rate(per_second: float | None, how: str = "counted") -> SafeString:
    said = numbers.rate(per_second)
    kind = "unknown" if per_second is None else how
    about = f"≈{numbers.NBSP}" if kind in numbers.APPROXIMATE else ""
    return mark_safe(f'<span class="fig" data-kind="{kind}">{about}{said.number}</span> <small>{said.unit}</small>')


def duration(seconds: float | None) -> SafeString:
    return mark_safe(durations.duration(seconds).replace("<", "&lt;"))


def _time(instant: datetime, form: str, said: str) -> SafeString:
    """``form`` tells the browser how to say it again: live fragments are rendered once, for every zone."""
    title = times.full(instant, timezone.get_current_timezone())
    if times.beyond(instant):  # nothing that a browser could say again
        return format_html('<span title="{}">{}</span>', title, said)
    return format_html('<time datetime="{}" data-as="{}" title="{}">{}</time>', times.iso(instant), form, title, said)


def ago(instant: datetime | None) -> SafeString:
    """Relative, the absolute form in the title."""
    if instant is None:
        return unknown()
    return _time(instant, "ago", times.ago(instant, database_clock.now()))


def sent(instant: datetime | None, how: str = "exact") -> SafeString:
    """How long ago, by its sender's clock; one from the future has no age."""
    ahead = (instant - database_clock.now()).total_seconds() if instant and not times.beyond(instant) else 0.0
    if instant and ahead >= 1:
        said = durations.duration(round(ahead))
        return format_html('{} <span class="sub">its sender’s clock is {} ahead</span>', unknown(), said)
    return format_html("{}{}", numbers.about(how) if instant and not times.beyond(instant) else "", ago(instant))


def due(instant: datetime, now: datetime) -> SafeString:
    """When the next delayed message goes, or how late it is."""
    if instant >= now:
        return format_html("next due {}", ago(instant))
    return format_html("due since {}", when(instant))


def soonest(instant: datetime | None, count: int | None, now: datetime, none: str) -> SafeString:
    """When the first of so many goes, and in words why none has a time: they are due at infinity, or were not read."""
    if instant and count:
        return due(instant, now)
    return format_html("{}", "not read" if count is None else "never due" if count else none)


def when(instant: datetime | None) -> SafeString:
    """Absolute and short, the full form in the title."""
    if instant is None:
        return unknown()
    return _time(instant, "short", times.short(instant, database_clock.now(), timezone.get_current_timezone()))


def told(instant: datetime) -> str:
    """As text, where it is part of a sentence: that has no tag in which a browser could say it again."""
    return times.sentence(instant, timezone.get_current_timezone())


def moment(instant: datetime | None) -> SafeString:
    """With milliseconds, for timelines."""
    if instant is None:
        return unknown()
    return _time(instant, "precise", times.precise(instant, timezone.get_current_timezone()))


def name(text: str) -> SafeString:
    """A name that may break where a reader would break it, and turns nothing around."""
    return mark_safe(
        "<wbr>".join(conditional_escape(piece) for piece in names.pieces(escape_invisible.plain(str(text))))
    )


def icon(which: str) -> SafeString:
    """A drawing of the sprite; never without a word beside it."""
    return format_html('<svg class="i" aria-hidden="true"><use href="{}#i-{}"/></svg>', _sprite(), which)


def verdict(state: str, sentence: str) -> SafeString:
    """The sentence that opens a page, behind the shape of its state: crit, warn, good, blind."""
    return format_html("{}{}", icon(SHAPE_OF_VERDICT.get(state, "ok")), sentence)


def live_verdict(name: str, state: str, sentence: str) -> dict[str, str]:
    """The same for an open page: a shape that stayed green beside a sentence that changed would be believed."""
    return {name: verdict(state, sentence), f"{name}.tone": f"verdict {state}"}


def _sprite() -> str:
    return static("pgqueue_admin/icons.svg")


def state(word: str, which: str = "") -> SafeString:
    """A state as shape, word, and third as colour. ``which`` names the state where the word says more."""
    which = which or word
    drawing = icon(ICON_OF_STATE[which]) if which in ICON_OF_STATE else ""
    return format_html('<span class="tag {}">{}{}</span>', CLASS_OF_STATE.get(which, ""), drawing, word)


def key(series: str) -> SafeString:
    """The swatch of a series, texture included."""
    return format_html(
        '<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><rect class="k-{}" width="12" height="12"/></svg>',
        series,
    )


def line(series: str) -> SafeString:
    """As ``key``, for what is drawn as a line: its colour and its dashes."""
    return format_html(
        '<svg class="key" viewBox="0 0 12 12" aria-hidden="true">'
        '<line class="l-{}" x1="0" y1="6" x2="12" y2="6"/></svg>',
        series,
    )


def joined(pieces: list[SafeString], glue: str = ", ") -> SafeString:
    return format_html_join(glue, "{}", ((piece,) for piece in pieces))
