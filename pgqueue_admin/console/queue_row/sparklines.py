"""Small charts as SVG: lengths are attributes, so that the strict policy needs no exception (CONSOLE 5.4)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from html import escape

from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.formatting.durations import plain

SERIES = ("ready", "flight", "delayed", "expired")
STRIP, BULLET, SPARK = 136.0, 96.0, 96.0
CUT = '<path class="cut" d="M118 14l6-16M122 14l6-16"/>'


def strip(counts: Sequence[int], longest: int) -> SafeString:
    """Ready, in flight, delayed, expired, side by side; two slashes cut what is longer than the scale."""
    total = sum(counts)
    said = ", ".join(
        f"{word} {count}" for word, count in zip(("ready", "in flight", "delayed", "expired"), counts, strict=True)
    )
    scale = STRIP / max(min(total, longest) if total > longest else longest, 1)
    drawn = "".join(_pieces(counts, scale)) + (CUT if total > longest else "")
    return mark_safe(f'<svg class="strip" viewBox="0 0 136 12" role="img" aria-label="{said}">{drawn}</svg>')


def _pieces(counts: Sequence[int], scale: float) -> Iterable[str]:
    at = 0.0
    for series, count in zip(SERIES, counts, strict=True):
        if count and at < STRIP:
            width = min(max(count * scale, 3.0), STRIP - at)
            yield f'<rect class="k-{series}" x="{at:.1f}" width="{width:.1f}" height="12"/>'
            at += width + 1


def bullet(age: float, target: float | None) -> SafeString:
    """Bar = age, tick = target, red past it. The script moves both as the age grows."""
    if not target:
        return mark_safe("")
    scale = BULLET / (1.1 * max(age, target))
    tone, at = ("k-dead" if age > target else "k-ready"), target * scale
    return mark_safe(
        '<svg class="bullet" viewBox="0 0 96 8" aria-hidden="true"><rect class="k-none" width="96" height="8"/>'
        f'<rect class="a {tone}" y="2" width="{age * scale:.1f}" height="4"/>'
        f'<line class="now" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="8"/></svg>'
    )


def spark(
    points: Sequence[int | None],
    name: str,
    since: float | None = None,
    *,
    window: str = "last hour",
    line: str = "soft",
) -> SafeString:
    """Points of the window from zero; gaps stay gaps; the breach is tinted from ``since`` (0 to 1) on."""
    known = [point for point in points if point is not None]
    if len(known) < 2:
        return mark_safe('<span class="faint">–</span>')
    breach = _breach(since) if since is not None else ""
    shape = escape(f"{name}, {window}: from {known[0]:,} to {known[-1]:,}, at most {max(known):,}")
    return mark_safe(
        f'<svg class="spark" viewBox="0 0 96 24" preserveAspectRatio="none" role="img" aria-label="{shape}">{breach}'
        f'<path class="l-{line}" d="{_path(points, max(known))}"/></svg>'
    )


def _breach(since: float) -> str:
    at = SPARK * since
    return (
        f'<rect class="breach" x="{at:.1f}" width="{SPARK - at:.1f}" height="24"/>'
        f'<line class="since" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="24"/>'
    )


def _path(points: Sequence[int | None], top: int) -> str:
    drawn, pen, heights = [], "M", dict[int, str]()
    for at, point in zip(_places(len(points)), points, strict=True):
        if point is None:
            pen = "M"
            continue
        if point not in heights:
            heights[point] = f"{23 - 21 * point / max(top, 1):.1f}"
        drawn.append(f"{pen}{at} {heights[point]}")
        pen = "L"
    return "".join(drawn)


@lru_cache(maxsize=16)
def _places(count: int) -> list[str]:
    """Positions of so many points from left to right. Cached: a page has fifty lines of equally many."""
    step = SPARK / max(count - 1, 1)
    return [f"{place * step:.1f}" for place in range(count)]


def share_of_hour(instant: datetime, now: datetime, seconds: float = 3600) -> float:
    """The place of ``instant`` in the window that ends now: 0 is its left edge."""
    return min(max(1 - (now - instant).total_seconds() / seconds, 0.0), 1.0)


def target_words(seconds: float | None) -> str:
    return plain(seconds) if seconds is not None else "none"
