"""The building blocks of pages as safe HTML: figures, times, names, icons. Template tags and live cells share them."""

import re
from collections.abc import Iterable
from datetime import datetime, tzinfo
from functools import lru_cache
from html import escape
from unicodedata import is_normalized

from django.conf import settings
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from pgqueue_admin.console import url_converters
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import durations, escape_invisible, names, numbers, times
from pgqueue_admin.formatting.escape_invisible import TextSpan
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

BAR = re.compile(r'"?⟦masked: ([^⟦⟧"]{1,60})⟧"?')
CLASS_OF_PIECE = {"key": "k", "text": "s", "number": "nn", "faint": "p", "mark": "x"}
_KEPT = 200  # characters of the longest text whose HTML is cached: longer ones are rare
SHAPE_OF_VERDICT = {"crit": "crit", "warn": "warn", "paused": "pause", "blind": "clock"}


def unknown() -> SafeString:
    return SafeString(numbers.UNKNOWN)


def figure(value: int | None, how: str = "counted") -> SafeString:
    """A count marked with how it is known. An abbreviated count has all its digits in the title."""
    value = None if value == "" else value  # a template passes "" for a missing variable, such as a missing sample
    said = numbers.format_figure(value, how or "counted")
    if value is None:
        return SafeString(f'<span class="fig" data-kind="unknown">{said}</span>')
    title = f' title="{value:,}"' if abs(value) >= 1_000_000 and f"{value:,}" not in said else ""
    return SafeString(f'<span class="fig" data-kind="{how or "counted"}"{title}>{said}</span>')


def rate(per_second: float | None, how: str = "counted") -> SafeString:
    said = numbers.rate(per_second)
    kind = "unknown" if per_second is None else how
    about = f"≈{numbers.NBSP}" if kind in numbers.APPROXIMATE else ""
    return SafeString(f'<span class="fig" data-kind="{kind}">{about}{said.number}</span> <small>{said.unit}</small>')


def duration(seconds: float | None) -> SafeString:
    return SafeString(durations.duration(seconds).replace("<", "&lt;"))


def _time(instant: datetime, form: str, said: str, zone: tzinfo) -> SafeString:
    """``form``: the format in which the browser renders the time again.

    A live fragment is rendered once for all zones.
    """
    title, said = escape(times.full(instant, zone)), escape(said)
    if times.beyond(instant):  # no calendar holds it, so a browser cannot render it
        return SafeString(f'<span title="{title}">{said}</span>')
    return SafeString(f'<time datetime="{times.iso(instant)}" data-as="{form}" title="{title}">{said}</time>')


def ago(instant: datetime | None) -> SafeString:
    """A relative time, with the absolute time in the title."""
    if instant is None:
        return unknown()
    return _time(instant, "ago", times.ago(instant, database_clock.now()), timezone.get_current_timezone())


def sent(instant: datetime | None, how: str = "exact") -> SafeString:
    """How long ago a message was sent, by its sender's clock. A time in the future has no age."""
    ahead = (instant - database_clock.now()).total_seconds() if instant and not times.beyond(instant) else 0.0
    if instant and ahead >= 1:
        said = durations.duration(round(ahead))
        return format_html('{} <span class="sub">its sender’s clock is {} ahead</span>', unknown(), said)
    return format_html("{}{}", numbers.about(how) if instant and not times.beyond(instant) else "", ago(instant))


def due(instant: datetime, now: datetime) -> SafeString:
    """When the next delayed message is due, or since when it is overdue."""
    if instant >= now:
        return format_html("next due {}", ago(instant))
    return format_html("due since {}", when(instant))


def soonest(instant: datetime | None, count: int | None, now: datetime, none: str) -> SafeString:
    """When the first of ``count`` messages is due. Without a time, says why: due at infinity, or not read."""
    if instant and count:
        return due(instant, now)
    return format_html("{}", "not read" if count is None else "never due" if count else none)


def when(instant: datetime | None) -> SafeString:
    """A short absolute time, with the full form in the title."""
    if instant is None:
        return unknown()
    zone = timezone.get_current_timezone()
    return _time(instant, "short", times.short(instant, database_clock.now(), zone), zone)


def sentence_time(instant: datetime) -> str:
    """A time as plain text within a sentence. Without a tag, the browser does not render it in another zone."""
    return times.sentence(instant, timezone.get_current_timezone())


def moment(instant: datetime | None) -> SafeString:
    """A time with milliseconds, for timelines."""
    if instant is None:
        return unknown()
    zone = timezone.get_current_timezone()
    return _time(instant, "precise", times.precise(instant, zone), zone)


def name(text: str) -> SafeString:
    """A name with line breaks allowed at readable places, and invisible and bidirectional characters marked."""
    text = str(text)
    return _kept_name(text) if len(text) <= _KEPT else _name(text)


def _name(text: str) -> SafeString:
    return SafeString("<wbr>".join(map(escape, names.pieces(escape_invisible.plain(text)))))


_kept_name = lru_cache(maxsize=4096)(_name)


def queue_link(address: Address | None, text: str = "", page: str = "queue") -> SafeString:
    """A link to a queue's page, or to the page ``page`` below it, such as ``messages``."""
    if address is None:
        return unknown()
    return SafeString(f'<a href="{escape(url_converters.queue(address, page))}">{name(text or address.table)}</a>')


def message_name(kind: str, unreadable: str = "") -> SafeString:
    """A message's type, or the reason why it has none."""
    if kind:
        return name(kind)
    return SafeString("Headers cannot be read" if unreadable else "Message of unknown type")


def message_size(count: int | None) -> SafeString:
    """The size of a body. NULL can wedge a receiver, so it is not shown as zero."""
    return SafeString('<b class="crit-t">NULL</b>' if count is None else numbers.size(count))


def seen(text: str) -> SafeString:
    """Escaped text from outside with invisible and bidirectional characters marked; also valid in an attribute."""
    return SafeString(escape(escape_invisible.plain(text)))


def marked(text: str) -> SafeString:
    """Text from outside. Characters that are invisible or change the direction of text become visible marks."""
    is_plain = "⟦" not in text and not escape_invisible.has_any(text)
    return SafeString(escape(text)) if is_plain else pieces(escape_invisible.marked(text))


def pieces(drawn: Iterable[TextSpan]) -> SafeString:
    """Spans of a text, each kind in its colour."""
    return SafeString("".join(map(_piece, drawn)))


def _piece(piece: TextSpan) -> str:
    """Draw masked parts as bars, whatever span they lie in."""
    if "⟦" not in piece.text:
        return _coloured(piece.text, piece.kind)
    between = BAR.split(piece.text)  # texts, with names of masking rules between them
    return "".join(_bar(text) if place % 2 else _coloured(text, piece.kind) for place, text in enumerate(between))


def _bar(name: str) -> str:
    return f'<span class="masked">{escape(name)}</span>'


def _coloured(text: str, kind: str) -> str:
    css = CLASS_OF_PIECE.get(kind)
    return f'<span class="{css}">{escape(text)}</span>' if css and text else escape(text)


def truncate(text: str, most: int) -> str:
    """Like the filter ``truncatechars``: the start of a text, followed by "…" if it is longer."""
    is_short = len(text) <= most and is_normalized("NFC", text)
    return text if is_short else str(Truncator(text).chars(most))


def truncated(text: str | None, most: int) -> str:
    """The start of a text that is too long for a page, followed by how many characters are missing."""
    text = text or ""
    return text if len(text) <= most else f"{text[:most]} … {len(text) - most:,} more characters"


def icon(which: str) -> SafeString:
    """An icon of the sprite. It always accompanies a word."""
    return _icon(which, settings.STATIC_URL, settings.DEBUG)


@lru_cache(maxsize=256)
def _icon(which: str, *_: object) -> SafeString:
    """The sprite's URL comes from the manifest, which a process reads once: so it can be cached."""
    sprite = static("pgqueue_admin/icons.svg")
    return format_html('<svg class="i" aria-hidden="true"><use href="{}#i-{}"/></svg>', sprite, which)


def verdict(state: str, sentence: str) -> SafeString:
    """The sentence that opens a page, behind the icon of its state: crit, warn, good, blind."""
    return format_html("{}{}", icon(SHAPE_OF_VERDICT.get(state, "ok")), sentence)


def live_verdict(name: str, state: str, sentence: str) -> dict[str, str]:
    """The verdict for an open page. The icon changes with the sentence, so that no green icon stays beside bad news."""
    return {name: verdict(state, sentence), f"{name}.tone": f"verdict {state}"}


def state(word: str, which: str = "") -> SafeString:
    """A state as icon, word and colour. ``which`` names the state if ``word`` says more than the state."""
    which = which or word
    drawing = icon(ICON_OF_STATE[which]) if which in ICON_OF_STATE else ""
    return SafeString(f'<span class="tag {CLASS_OF_STATE.get(which, "")}">{drawing}{escape(str(word))}</span>')


def key(series: str) -> SafeString:
    """The swatch of a series, with its texture."""
    return format_html(
        '<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><rect class="k-{}" width="12" height="12"/></svg>',
        series,
    )


def line(series: str) -> SafeString:
    """Like ``key``, for a series drawn as a line: its colour and its dashes."""
    return format_html(
        '<svg class="key" viewBox="0 0 12 12" aria-hidden="true">'
        '<line class="l-{}" x1="0" y1="6" x2="12" y2="6"/></svg>',
        series,
    )


def joined(pieces: list[SafeString], glue: str = ", ") -> SafeString:
    return format_html_join(glue, "{}", ((piece,) for piece in pieces))
