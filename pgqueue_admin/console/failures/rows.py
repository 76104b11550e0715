"""The list of failures: groups by cause with state, size, and what people recorded about each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString

from pgqueue_admin.archive import failure_groups, fingerprints
from pgqueue_admin.archive.failure_groups import (
    STATES,
    FailureFigures,
    FailureStanding,
    NamedCount,
    Place,
    State,
)
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console import pagination
from pgqueue_admin.console.messages.detail.summary import address_of
from pgqueue_admin.console.queue_row import sparklines
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.formatting import failures
from pgqueue_admin.formatting.numbers import CAPPED, COUNTED, format_int, pluralize
from pgqueue_admin.models import FailureGroup
from pgqueue_admin.models.failure_group import FailureWords, TeamWords, decided, of_teams, words_of
from pgqueue_admin.services import failure_groups as causes
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.permissions import Refusal
from pgqueue_admin.transport.wire.type_names import short_type

PAGE = 50
NOBODY = " nobody"  # the URL's value for failures without an owner: no owner's name begins with a blank
RETRIED = {"again": "retried, died again", "well": "retried, none died again", "never": "never retried"}
ONLY_LOOKS = Refusal("needs a group that may act on these queues: yours may only look")
NAMES = 2  # types and queues that a row has room for
_PLACES = {state: place for place, state in enumerate(STATES)}


class JudgedFailure(NamedTuple):
    """A failure's state without details: there are thousands, of which a page shows few."""

    fingerprint: str
    dead: int
    is_today: bool
    known: FailureWords | None
    state: State
    acknowledged: bool
    retried: str  # a key of RETRIED

    @property
    def owner(self) -> str:
        return self.known.owner if self.known else ""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One group. ``told``: what is stored of it; ``known``: what people recorded about it."""

    figures: FailureFigures
    told: FailureGroup | None
    known: FailureWords | None
    state: State
    acknowledged: bool
    places: Sequence[Place] = ()
    hours: Sequence[int] = ()
    teams: Sequence[TeamWords] = ()  # only for persons without scopes

    @property
    def fingerprint(self) -> str:
        return self.figures.fingerprint

    @property
    def cause(self) -> FailureGroup:
        """The group's cause; built on access, since a page shows few of the groups that it judges."""
        return self.told or unnamed(self.fingerprint)

    @property
    def word(self) -> str:
        return failures.WORDS[self.state]

    @property
    def tone(self) -> str:
        if self.acknowledged:
            return "grey"
        return {"new": "crit", "growing": "crit", "back": "warn"}.get(self.state, "")

    @property
    def name(self) -> str:
        return short_type(self.cause.exception) or self.cause.exception

    @property
    def retried(self) -> str:
        return failures.retried(self.figures.retried, self.figures.succeeded, self.figures.dead_again)

    @property
    def retries(self) -> int:
        return self.figures.retried + self.figures.succeeded + self.figures.dead_again

    @property
    def first_at(self) -> datetime:
        """The first death, even if it has left the archive."""
        known, found = self.known.first_at if self.known else None, self.figures.first_at
        return min(known, found) if known else found

    @property
    def died_today(self) -> int:
        """Deaths in 24 hours, whatever became of the messages; the sum of the hours if no state needed the count."""
        return sum(self.hours) if self.figures.died_today is None else self.figures.died_today

    @property
    def dead(self) -> str:
        """The number shown on buttons."""
        return format_int(self.figures.dead)

    @property
    def owner(self) -> str:
        return self.known.owner if self.known else ""

    @property
    def addresses(self) -> list[Address]:
        found = dict.fromkeys(place.queue for place in self.places)
        return [address for each in found if (address := address_of(each))]

    @property
    def types(self) -> list[tuple[str, str]]:
        """Name and count of the most frequent types; "of the newest …" if only these were counted."""
        counted: Counter[str] = Counter()
        for place in self.places:
            counted[short_type(place.type or "") or "unknown type"] += place.messages
        looked = sum(counted.values())
        if looked < self.figures.all_dead:
            return [(name, f"{format_int(count)} of the newest {looked}") for name, count in counted.most_common(NAMES)]
        return [(name, format_int(count)) for name, count in counted.most_common(NAMES)]

    @property
    def spark(self) -> SafeString:
        return sparklines.spark(list(self.hours), "Deaths an hour", window="last 24 hours", line="dead")


@dataclass(frozen=True, slots=True)
class FailureList:
    """All groups of a search, judged; ``open`` and ``acknowledged`` are those of the page.

    ``is_narrowed``: by search, state, owner or retries, so that nothing follows for failures not shown. ``how``: capped
    if there are more groups than were judged; then every count is a lower bound.
    """

    open: list[FailureRow]
    acknowledged: list[FailureRow]
    counts: dict[str, int]  # unacknowledged groups by state
    by_state: list[tuple[str, str, int]]  # state, word, messages
    by_owner: list[tuple[str, str, int]]
    by_retried: list[tuple[str, str, int]]  # empty if nothing was retried
    groups: int
    dead: int
    acknowledged_dead: int
    acknowledged_groups: int
    more: int  # groups that the page does not show
    after: int  # where the next page begins
    uncovered: fingerprints.Uncovered
    is_narrowed: bool
    how: str
    names: list[NamedCount] = field(default_factory=list)

    @property
    def next_page(self) -> str:
        return pagination.pack(self.after)

    @property
    def verdict(self) -> str:
        if self.is_narrowed:
            return failures.matching(self.groups, self.how)
        return failures.verdict(self.counts, self.acknowledged_groups, self._uncovered, how=self.how)

    @property
    def _uncovered(self) -> str:
        number, more = self.uncovered
        return pluralize(number, "failed message", how=CAPPED if more else COUNTED) if number else ""

    @property
    def judged(self) -> int | None:
        """How many groups were judged, if there are more."""
        return failure_groups.MOST if self.how == CAPPED else None

    @property
    def tone(self) -> str:
        if self.is_narrowed:
            return ""
        if any(self.counts.get(state) for state in failures.LOUD):
            return "crit" if self.counts.get("new") or self.counts.get("growing") else "warn"
        if self.judged:
            return "warn"
        return "" if self.counts.get("quiet") or self.uncovered.number else "good"


def read(
    connection: Connection,
    asked: ArchiveFilter | None,
    now: datetime,
    *,
    access: ContentAccess,
    state: str,
    owner: str,
    retried: str,
    start: int,
) -> FailureList:
    """``asked`` filters messages; ``state``, ``owner`` and ``retried`` filter groups; ``start`` skips groups."""
    found = failure_groups.standings(connection, asked, failure_groups.MOST + 1)
    how, found = CAPPED if len(found) > failure_groups.MOST else COUNTED, found[: failure_groups.MOST]
    known = {**decided(), **words_of([each.fingerprint for each in found if each.may_be_new])}
    everything = [_judged(each, known.get(each.fingerprint), now) for each in found]
    chosen = [
        row for row in everything if state in ("", row.state) and retried in ("", row.retried) and _is_whose(row, owner)
    ]
    open_rows = sorted((row for row in chosen if not row.acknowledged), key=_worst_first)
    quiet_rows = sorted((row for row in chosen if row.acknowledged), key=_of_today_first)
    by_state = Counter[State]()
    for row in everything:
        by_state[row.state] += row.dead
    of_page = [*open_rows, *quiet_rows][start : start + PAGE]
    shown = _detailed(connection, _rows(connection, of_page), access)
    rest = max(0, len(chosen) - start - len(of_page))
    return FailureList(
        [row for row in shown if not row.acknowledged],
        [row for row in shown if row.acknowledged],
        Counter(row.state for row in open_rows),
        [(each, failures.WORDS[each], by_state[each]) for each in STATES],
        _owners(everything),
        _retries(everything),
        len(chosen),
        _dead(chosen),
        _dead(quiet_rows),
        len(quiet_rows),
        rest,
        start + len(of_page),
        fingerprints.uncovered(connection, settings.PGQUEUE["CAP"]),
        bool(asked or state or owner or retried),
        how,
    )


def one(
    connection: Connection, figures: FailureFigures, known: FailureWords | None, now: datetime, access: ContentAccess
) -> FailureRow:
    return _detailed(connection, [judged(figures, known, now)], access)[0]


def several(
    connection: Connection,
    figures: Iterable[FailureFigures],
    known: Mapping[str, FailureWords],
    now: datetime,
    access: ContentAccess,
) -> list[FailureRow]:
    return _detailed(connection, [judged(each, known.get(each.fingerprint), now) for each in figures], access)


def acted_on(connection: Connection, rows: Sequence[FailureRow]) -> int:
    """How many of their dead messages lie in queues that this person may act on."""
    seen, dead = visible_queues.current(), sum(row.figures.dead for row in rows)
    if seen is None or seen.acted_on == seen.seen:
        return dead
    with visible_queues.within(seen.acted_on_alone):
        found = failure_groups.some(connection, [row.fingerprint for row in rows])
    return sum(figures.dead for figures in found)


def judged(figures: FailureFigures, known: FailureWords | None, now: datetime) -> FailureRow:
    return _row(figures, _judged(figures.standing, known, now))


def _judged(standing: FailureStanding, known: FailureWords | None, now: datetime) -> JudgedFailure:
    state = standing.state(known.first_at if known else None)
    acknowledged = known is not None and known.is_acknowledged(standing.all_dead, now)
    about = (standing.fingerprint, standing.dead, standing.is_today)
    return JudgedFailure(*about, known, state, acknowledged, _retried(standing))


def _retried(standing: FailureStanding) -> str:
    """The key of RETRIED, by what became of the messages."""
    return "again" if standing.died_again else "well" if standing.was_retried else "never"


def _rows(connection: Connection, judged: Sequence[JudgedFailure]) -> list[FailureRow]:
    """Rows for a page, without failures that have left the archive meanwhile."""
    found = failure_groups.some(connection, [each.fingerprint for each in judged])
    figures = {each.fingerprint: each for each in found}
    there = [each for each in judged if each.fingerprint in figures]
    return [_row(figures[each.fingerprint]._replace(dead=each.dead), each) for each in there]


def _row(figures: FailureFigures, judged: JudgedFailure) -> FailureRow:
    told = judged.known if isinstance(judged.known, FailureGroup) else None
    return FailureRow(figures, told, judged.known, judged.state, judged.acknowledged)


def unnamed(fingerprint: str) -> FailureGroup:
    """A failure of which nothing is stored and nothing can be read."""
    return FailureGroup(pk=fingerprint, exception=f"Failure {fingerprint}")


def _detailed(connection: Connection, rows: list[FailureRow], access: ContentAccess) -> list[FailureRow]:
    """Add causes, places and hours, only to the failures that a page shows."""
    digests = [row.fingerprint for row in rows]
    known, teams = words_of(digests), of_teams(digests)
    told = {each: said for each, said in known.items() if isinstance(said, FailureGroup)}
    told |= causes.causes(connection, [each for each in digests if each not in told])
    places: dict[str, list[Place]] = {}
    for place in failure_groups.places(connection, digests):
        places.setdefault(place.fingerprint, []).append(place)
    hours = failure_groups.hours(connection, digests)
    return [
        FailureRow(
            row.figures._replace(died_lately=hours[row.fingerprint].lately),
            access.failure(told.get(row.fingerprint) or row.cause),
            known.get(row.fingerprint),
            row.state,
            row.acknowledged,
            places.get(row.fingerprint, ()),
            hours[row.fingerprint].deaths,
            teams.get(row.fingerprint, ()),
        )
        for row in rows
    ]


def _worst_first(row: JudgedFailure) -> tuple[int, int, str]:
    return _PLACES[row.state], -row.dead, row.fingerprint


def _of_today_first(row: JudgedFailure) -> tuple[bool, int, str]:
    return not row.is_today, -row.dead, row.fingerprint


def _is_whose(row: JudgedFailure, owner: str) -> bool:
    return not owner or row.owner == ("" if owner == NOBODY else owner)


def _owners(rows: Iterable[JudgedFailure]) -> list[tuple[str, str, int]]:
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row.owner] += row.dead
    return [(owner or NOBODY, owner or "nobody", count) for owner, count in counted.most_common(6)]


def _retries(rows: Sequence[JudgedFailure]) -> list[tuple[str, str, int]]:
    if all(row.retried == "never" for row in rows):
        return []
    return [(each, word, _dead(row for row in rows if row.retried == each)) for each, word in RETRIED.items()]


def _dead(rows: Iterable[JudgedFailure]) -> int:
    return sum(row.dead for row in rows)


def searched(filter_: Any) -> ArchiveFilter | None:
    """None if the search filters nothing: then only the index is read."""
    return None if filter_ == ArchiveFilter(state="") else filter_
