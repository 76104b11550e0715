"""Dead messages grouped by failure: count, time range and state of each group.

Limited to queues that the current user may see: a group without messages there does not exist for that user.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pgqueue_admin.archive import failure_tallies, store
from pgqueue_admin.archive.damaged_row import readable
from pgqueue_admin.archive.fingerprints import are_kept, seen, uncovered
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.statements import Statement

State = Literal["new", "growing", "back", "quiet"]
STATES: tuple[State, ...] = ("new", "growing", "back", "quiet")  # in this order on pages
DAY = timedelta(hours=24)
LEAST = 3  # deaths within 10 minutes that may be called growing
LATELY_IN_DAY = 143  # 10-minute steps in the rest of 24 hours
DECIDES = 73  # at this multiple of the last 10 minutes' deaths, 24 hours' deaths rule out growth
MOST = 3_000  # groups that one page judges; ask for one more to learn whether there are more
PLACES = 200  # newest dead messages that give a group's queues and types
PLACES_OF_MANY = 20  # likewise, per group of a list: these rows are read one by one, scattered over the archive
MEMBERS = 200  # newest dead messages that are compared
BESIDE = 100  # newest other messages of a queue to compare with
READ = 5_000  # newest messages of a queue that are searched for these
NEWEST = 5_000  # newest members whose operations are listed
_NAMES = {"type": "of_type", "queue": "of_queue", "endpoint": "of_endpoint"}


class FailureStanding(NamedTuple):
    """What decides a group's state. ``dead``: messages that the search found. Values that no state depends on are not
    queried."""

    fingerprint: str
    dead: int
    all_dead: int  # whatever was searched for
    died_lately: int | None  # this and the following: see FailureFigures
    died_today: int | None
    is_today: bool
    died_before: bool  # whether one died before the last 24 hours; False if none died within them
    was_silent: bool
    dead_before: bool
    counted_at: datetime | None  # None: it is not new
    was_retried: bool
    died_again: bool

    def state(self, known_since: datetime | None = None) -> State:
        """``known_since``: time of its first death, if earlier messages have left the archive."""
        if not self.is_today:
            return "quiet"
        if self.may_be_new and not (known_since and self.counted_at and known_since < self.counted_at - DAY):
            return "new"
        if self._is_back:
            return "back"
        return "growing" if self._grows else "quiet"

    @property
    def _grows(self) -> bool:
        if self.died_today is None or self.died_lately is None or self.died_lately < LEAST:
            return False
        return self.died_lately > 2 * (self.died_today - self.died_lately) / LATELY_IN_DAY

    @property
    def may_be_new(self) -> bool:
        """Whether its state depends on the time of its first death."""
        return self.is_today and not self.died_before

    @property
    def _is_back(self) -> bool:
        """Dead again after a week without deaths, or after all earlier dead messages were resolved. If none died before
        in the archive, its earlier messages have left it."""
        return not self.died_before or self.was_silent or not self.dead_before


class FailureFigures(NamedTuple):
    """Counts at one instant. ``dead``: messages that the search found. The last four count what retries and people did.

    Values that only a state depends on are queried only if it does: earlier days only if one died in the last 24 hours.
    """

    fingerprint: str
    dead: int
    all_dead: int  # whatever was searched for
    first_at: datetime
    last_at: datetime
    died_lately: int | None  # in the last 10 minutes; None: its state does not need it; hours() counts it
    # in the last 24 hours, whatever became of them: for several, only until growth is decided; None: not growing
    died_today: int | None
    is_today: bool  # whether one died in the last 24 hours
    before_today: datetime | None
    was_silent: bool  # whether a week passed between the last earlier death and the first of these
    dead_before: bool  # whether one that died earlier is still dead
    counted_at: datetime
    retried: int
    succeeded: int
    dead_again: int
    discarded: int

    def state(self, known_since: datetime | None = None) -> State:
        """As FailureStanding.state."""
        return self.standing.state(known_since)

    @property
    def standing(self) -> FailureStanding:
        before = self.before_today is not None
        counted = (self.died_lately, self.died_today, self.is_today, before, self.was_silent, self.dead_before)
        became = (self.retried + self.succeeded + self.dead_again > 0, self.dead_again > 0)
        return FailureStanding(self.fingerprint, self.dead, self.all_dead, *counted, self.counted_at, *became)


class NamedCount(NamedTuple):
    """Dead messages of one type, queue or endpoint. ``more``: only the newest were counted; there are older ones."""

    name: str
    dead: int
    causes: int
    first_at: datetime
    last_at: datetime
    more: bool


class Hours(NamedTuple):
    """``deaths``: in each of the last 24 hours, oldest first; ``lately``: in the last 10 minutes."""

    deaths: list[int]
    lately: int


class Place(NamedTuple):
    fingerprint: str
    queue: str
    type: str | None
    endpoint: str
    messages: int


def groups(connection: Connection, asked: ArchiveFilter | None = None, most: int = MOST) -> list[FailureFigures]:
    """Groups with deaths in the last 24 hours first, so that the limit hides nothing new; then by dead messages,
    descending.

    ``asked``: which messages count as dead. The state is judged by the whole group.
    """
    _check(connection, asked)
    if not failure_tallies.are_kept(connection):
        return _counted(connection, asked, most)
    return [FailureFigures(*row) for row in _listed(connection, asked, most, _figures())]


def standings(connection: Connection, asked: ArchiveFilter | None = None, most: int = MOST) -> list[FailureStanding]:
    """As ``groups``, unordered, for a page that judges many and shows few; ``some`` has the figures of those shown."""
    _check(connection, asked)
    if not failure_tallies.are_kept(connection):
        return [each.standing for each in _counted(connection, asked, most)]
    sql = _sql()
    parts = {"figures": sql.tallied_standings, "newest": sql.newest_of_day}
    rows = _listed(connection, asked, most, {**parts, "order": sql.in_no_order})
    if len(rows) == most:  # the limit was reached: order decides which ones
        rows = _listed(connection, asked, most, parts)
    return list(map(FailureStanding._make, rows))


def _check(connection: Connection, asked: ArchiveFilter | None) -> None:
    if asked:
        store.check(connection, asked)


def _counted(connection: Connection, asked: ArchiveFilter | None, most: int) -> list[FailureFigures]:
    """Count the archive: no sums are kept."""
    sql = _sql()
    where, names = seen()
    dead = sql.matching_dead if asked else sql.all_dead
    parts = {"figures": sql.figures, "dead": dead, "seen": where, **(store.matching(asked) if asked else {})}
    params = {**(asked.params() if asked else {}), **names, "most": most}
    return [FailureFigures(*row) for row in connection.all(sql.groups(**parts), params)]


def _listed(connection: Connection, asked: ArchiveFilter | None, most: int, parts: dict[str, Any]) -> list[Any]:
    """From the sums alone for a single queue; otherwise from what the search reads."""
    sql = _sql()
    if asked is None:
        return _tallied(connection, sql.tallied_groups, parts, most=most)
    if asked.queue and _asks_for_all(replace(asked, queue="")):
        in_queue = {**parts, "found": sql.found_in_queue}
        return _tallied(connection, sql.tallied_found, in_queue, queue=asked.queue, most=most)
    found = {**parts, "found": sql.found_in_archive, **store.matching(asked)}
    return _tallied(connection, sql.tallied_found, found, **asked.params(), most=most)


def group(connection: Connection, fingerprint: str) -> FailureFigures | None:
    """With all deaths of the last 24 hours. None if the archive has no such message any more."""
    found = _some(connection, [fingerprint], least=0, decides=None)
    return found[0] if found else None


def of_message(connection: Connection, archive_id: int) -> tuple[FailureFigures, int] | None:
    """The figures of this message's failure, and how many other messages died of it in the last 10 minutes.

    None if it has no failure or no fingerprint yet.
    """
    row = connection.one(_sql().of_message(), {"id": archive_id}) if are_kept(connection) else None
    figures = group(connection, row.fingerprint) if row else None
    return (figures, max(0, (figures.died_lately or 0) - bool(row.died_lately))) if row and figures else None


def some(connection: Connection, fingerprints: Sequence[str]) -> list[FailureFigures]:
    """Figures of several failures, whatever became of their messages; with the deaths of the last 10 minutes."""
    return _some(connection, fingerprints)


def _some(connection: Connection, fingerprints: Sequence[str], **counted: Any) -> list[FailureFigures]:
    if failure_tallies.are_kept(connection):
        params = {"fingerprints": list(fingerprints), "all_lately": True, **counted}
        return [FailureFigures(*row) for row in _tallied(connection, _sql().tallied_some, _figures(), **params)]
    where, names = seen()
    statement = _sql().some(figures=_sql().figures, dead=_sql().all_dead, seen=where)
    rows = connection.all(statement, {"fingerprints": list(fingerprints), **names})
    return [FailureFigures(*row) for row in rows]


def firsts(connection: Connection, fingerprints: Sequence[str]) -> dict[str, datetime]:
    """Time of the first death of each failure that has messages."""
    if not fingerprints:
        return {}
    rows = _all(connection, _sql().firsts, fingerprints=list(fingerprints))
    return {row.fingerprint: row.first_at for row in rows}


def _figures() -> dict[str, Any]:
    return {"figures": _sql().tallied_figures, "newest": _sql().newest_of_group}


def _tallied(connection: Connection, statement: Statement, parts: dict[str, Any], **params: Any) -> list[Any]:
    sql = _sql()
    shared = {"tallied": sql.tallied, "judging": sql.judging, "order": sql.today_first}
    asked = {"least": LEAST, "decides": DECIDES, "all_lately": False, **params}
    return _all(connection, statement, {**shared, **parts}, **asked)


def newest(connection: Connection, fingerprints: Sequence[str]) -> dict[str, Any]:
    """For each failure the row that ``fingerprints.of_row`` reads, with id and queue; unreadable rows are left out."""
    where, names = seen()
    newest = _sql().newest(told_by=_sql().told_by, seen=where)
    rows = readable(connection, lambda some: connection.all(newest, {"fingerprints": some, **names}), fingerprints)
    return {row.fingerprint: row for row in rows}


def places(connection: Connection, fingerprints: Sequence[str]) -> list[Place]:
    """Where the newest dead messages of each failure died, most messages first."""
    most = PLACES if len(fingerprints) == 1 else PLACES_OF_MANY
    rows = _all(connection, _sql().places, fingerprints=list(fingerprints), most=most)
    return [Place(*row) for row in rows]


def hours(connection: Connection, fingerprints: Sequence[str]) -> dict[str, Hours]:
    """Deaths of each failure in each of the last 24 hours, and in the last 10 minutes."""
    deaths, lately = {each: [0] * 24 for each in fingerprints}, dict.fromkeys(fingerprints, 0)
    for fingerprint, ago, count, of_these in _all(connection, _sql().hours, fingerprints=list(fingerprints)):
        deaths[fingerprint][23 - ago] += count
        lately[fingerprint] += of_these
    return {each: Hours(deaths[each], lately[each]) for each in deaths}


def bars(connection: Connection, fingerprint: str, step: int, steps: int) -> list[int]:
    """Deaths per step of ``step`` seconds, oldest first."""
    found = [0] * steps
    for row in _all(connection, _sql().bars, fingerprint=fingerprint, step=step, steps=steps):
        if 0 <= row.ago < steps:
            found[steps - 1 - row.ago] += row.count
    return found


def by_name(connection: Connection, name: str, asked: ArchiveFilter, most: int, cap: int) -> list[NamedCount]:
    """``name``: type, queue or endpoint. Counts the newest ``cap`` messages that the filter finds. All dead messages by
    queue are counted completely."""
    store.check(connection, asked)
    sql = _sql()
    if name == "queue" and _asks_for_all(asked) and _all_have_sums(connection, cap):
        return [NamedCount(*row) for row in _all(connection, sql.tallied_queues, most=most)]
    statement = sql.by_name(name=getattr(sql, _NAMES[name]), **store.matching(asked))
    return [NamedCount(*row) for row in connection.all(statement, {**asked.params(), "most": most, "cap": cap})]


def _asks_for_all(asked: ArchiveFilter) -> bool:
    """Whether the filter asks for everything that the user may see."""
    return replace(asked, state="", within=None) == ArchiveFilter(state="", within=None)


def _all_have_sums(connection: Connection, cap: int) -> bool:
    """Whether all but ``cap`` messages are in the sums; those few are counted one by one."""
    return failure_tallies.are_kept(connection) and not uncovered(connection, cap).more


def members(connection: Connection, fingerprint: str) -> list[Any]:
    return _all(connection, _sql().members, fingerprint=fingerprint, most=MEMBERS)


def beside(connection: Connection, figures: FailureFigures, queues: Sequence[str]) -> list[Any]:
    """The newest other messages archived from these queues between its first and its last death, among ``READ``."""
    asked: dict[str, Any] = {"fingerprint": figures.fingerprint, "since": figures.first_at, "until": figures.last_at}
    asked |= {"most": BESIDE, "read": READ}
    return [row for each in queues for row in _all(connection, _sql().beside, queue=each, **asked)]


class OfCause(NamedTuple):
    """``fingerprints``: most messages first. ``newest``: 0 if all dead messages were looked at; otherwise only so many
    of the newest."""

    fingerprints: list[str]
    newest: int


def of_causes(connection: Connection, named: Sequence[tuple[str, str]]) -> dict[tuple[str, str], OfCause]:
    """The failures of the newest dead messages, by canonical queue and exception type.

    A pair is left out if some of its messages have no fingerprint yet: the number of its failures is unknown.
    """
    asked: dict[str, Any] = {
        "queues": [queue for queue, _ in named],
        "causes": [cause for _, cause in named],
        "most": MEMBERS,
    }
    found: dict[tuple[str, str], list[str]] = {}
    unknown, looked = set[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in _all(connection, _sql().of_causes, **asked):
        if row.fingerprint is None:
            unknown.add((row.queue, row.cause))
        found.setdefault((row.queue, row.cause), []).append(row.fingerprint)
        looked[row.queue, row.cause] += row.messages
    newest = {each: number if number >= MEMBERS else 0 for each, number in looked.items()}
    return {each: OfCause(digests, newest[each]) for each, digests in found.items() if each not in unknown}


def operations(connection: Connection, fingerprint: str) -> list[Any]:
    """Operations of the ``NEWEST`` members: rows of operation, state, count; latest operation first."""
    return _all(connection, _sql().operations, fingerprint=fingerprint, most=NEWEST)


def all_fingerprints(connection: Connection) -> list[str]:
    return [row.fingerprint for row in connection.all(_sql().all_fingerprints())]


def _all(connection: Connection, statement: Statement, parts: dict[str, Any] | None = None, **params: Any) -> list[Any]:
    """Restricted to queues that the current user may see."""
    where, names = seen()
    return connection.all(statement(**(parts or {}), seen=where), {**params, **names})


def _sql() -> Any:
    return postgresql().failure_groups
