"""The navigation rail: entries in groups named by verbs, each with a badge to the right of its name."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import conditional_escape

from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.formatting import escape_invisible, times
from pgqueue_admin.formatting.numbers import format_figure, of_sum
from pgqueue_admin.models import navigation_counts
from pgqueue_admin.monitor.delayed import LATE

# group, entries: URL name, word on the screen, property of NavigationBadges
GROUPS = (
    ("", (("overview", "Overview", ""), ("alerts", "Warnings", "warnings"))),
    (
        "Look",
        (
            ("queues", "Queues", "queues"),
            ("delayed", "Delayed", "delayed"),
            ("outboxes", "Outbox", ""),
            ("subscriptions", "Subscriptions", ""),
        ),
    ),
    (
        "Repair",
        (
            ("failures", "Failures", "dead"),
            ("archive", "Archive", ""),
            ("operations", "Operations", "operations"),
            ("bin", "Bin", ""),
        ),
    ),
    (
        "Run",
        (("endpoints", "Endpoints", "endpoints"), ("workers", "Workers", "workers"), ("schedules", "Schedules", "")),
    ),
    ("Watch", (("trends", "Trends", ""), ("audit", "Audit", ""), ("settings", "Settings", ""))),
)
# typed after "g"; each is a letter of its entry's word
KEYS = {
    "overview": "o", "alerts": "w", "queues": "q", "delayed": "d", "outboxes": "b", "subscriptions": "s",
    "failures": "f", "archive": "a", "operations": "p", "bin": "i", "endpoints": "e", "workers": "k", "schedules": "h",
    "trends": "t", "audit": "u", "settings": "n",
}  # fmt: skip
QUICK = ("overview", "queues", "failures", "alerts")


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    name: str
    word: str
    url: str
    current: bool
    count: str = ""
    counts: bool = False  # whether it can have a count, even if it has none at the moment
    tone: str = ""  # "", mild (attention) or hot (unacknowledged trouble)

    @property
    def key(self) -> str:
        return KEYS[self.name]


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    word: str
    entries: list[NavigationEntry] = field(default_factory=list)


def path_of(name: str) -> str:
    """The path of a page, or "" if the page does not exist, so that no dead link is shown."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


class NavigationBadges:
    """The badges of entries: figure and tone. Queried at most once a page."""

    @cached_property
    def _read(self) -> navigation_counts.NavigationCounts:
        return navigation_counts.counts(LATE)

    @property
    def newest(self) -> datetime | None:
        """When the newest sample was taken."""
        return self._read.newest

    @property
    def why_stale(self) -> str:
        """The banner's reason for stale figures: the sampler's own error, if it runs."""
        said = escape_invisible.first_line(self._read.blind or "")
        return f"The sampler cannot read the queues: {said}" if said else "The sampler has not reported since."

    @property
    def warnings(self) -> tuple[str, str]:
        return _loud(self._read.warnings, "hot" if self._read.critical else "mild")

    @property
    def queues(self) -> tuple[str, str]:
        return format_figure(self._read.queues), ""

    @property
    def delayed(self) -> tuple[str, str]:
        """How many delayed messages wait; amber if some are overdue and apparently nothing moves them."""
        held = self._read.delayed
        how = of_sum(self._read.delayed_how or ())
        return (format_figure(held, how) if held else ""), "mild" if self._read.unmoved else ""

    @property
    def dead(self) -> tuple[str, str]:
        return _loud(self._read.dead, "hot")

    @property
    def operations(self) -> tuple[str, str]:
        return _loud(self._read.operations, "mild")

    @property
    def endpoints(self) -> tuple[str, str]:
        all_of_them, halted = self._read.endpoints, self._read.halted
        return (f"{all_of_them - halted} of {all_of_them}", "mild") if halted else (format_figure(all_of_them), "")

    @property
    def workers(self) -> tuple[str, str]:
        up, wanted = self._read.up, self._read.should_run
        if self._read.broken:
            return f"{self._read.broken} down", "hot"
        return (f"{up} of {wanted}", "mild") if up < wanted else (format_figure(up) if up else "", "")


def _loud(count: int | None, tone: str) -> tuple[str, str]:
    """A zero or unknown count has no badge."""
    return (format_figure(count), tone) if count else ("", "")


def groups(request: HttpRequest, counts: NavigationBadges) -> list[NavigationGroup]:
    """The rail for this page. The current entry is the page itself, or the noun above it."""
    found, urls = [], _urls()
    here = _of(request, urls)
    for word, entries in GROUPS:
        shown = [_entry(counts, urls[entry[0]], here, *entry) for entry in entries if _is_shown(entry[0], urls)]
        if shown:
            found.append(NavigationGroup(word, shown))
    return found


def _is_shown(name: str, urls: dict[str, str]) -> bool:
    return name in urls and addresses.is_open(name)


def live(_: str) -> dict[str, str]:
    """Topic ``frame``, on every page: the age of the figures, and the rail's badges."""
    counts = NavigationBadges()
    newest = counts.newest
    named = [(name, count) for _, entries in GROUPS for name, _, count in entries if count and path_of(name)]
    named = [(name, count) for name, count in named if addresses.is_open(name)]
    said = {f"nav.{name}": getattr(counts, count)[0] for name, count in named}
    tones = {f"nav.{name}.tone": f"n {getattr(counts, count)[1]}" for name, count in named}
    why = str(conditional_escape(counts.why_stale))
    return {"@at": times.iso(newest) if newest else "", "frame.why": why, **said, **tones}


def keys() -> list[tuple[str, str]]:
    """Each key with its word, the key in upper case: ``("p", "oPerations")``."""
    shown = ((name, word) for _, entries in GROUPS for name, word, _ in entries if addresses.is_open(name))
    words = {name: word.lower() for name, word in shown if path_of(name)}
    return [(KEYS[name], word.replace(KEYS[name], KEYS[name].upper(), 1)) for name, word in words.items()]


def quick(rail: list[NavigationGroup]) -> list[NavigationEntry]:
    """The bottom bar of narrow screens."""
    by_name = {entry.name: entry for group in rail for entry in group.entries}
    return [by_name[name] for name in QUICK if name in by_name]


def stands_under(request: HttpRequest, name: str) -> None:
    """Set the current entry for a page below another entry's path: a delayed table's messages lie below Queues."""
    request.rail_entry = name  # type: ignore[attr-defined]


def _urls() -> dict[str, str]:
    """Paths of the pages that exist."""
    return {name: url for _, entries in GROUPS for name, _, _ in entries if (url := path_of(name))}


def _of(request: HttpRequest, urls: dict[str, str]) -> str:
    """The name of the entry whose page this is, or below which it lies."""
    if said := getattr(request, "rail_entry", ""):
        return str(said)
    return next((name for name, url in urls.items() if _leads_to(url, request.path)), "")


def _leads_to(url: str, path: str) -> bool:
    return path == url if url == path_of("overview") else path.startswith(url)


def _entry(counts: NavigationBadges, url: str, here: str, name: str, word: str, count: str) -> NavigationEntry:
    said, tone = getattr(counts, count) if count else ("", "")
    return NavigationEntry(name, word, url, name == here, said, bool(count), tone)
