"""Figures of history for charts, read from the rollups without Spark."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Max, Min

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.history.rollups import latency_bands as bands
from pgqueue_admin.history.rollups import name_limits
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models import Rollup
from pgqueue_admin.models.raw_sql import console_sql, rows_of
from pgqueue_admin.models.time_grains import STEPS, few

OUTCOMES = 1_000  # rows of retry outcomes read at most
NAMES = ("queue", "endpoint", "type")
MEASURES = ("critical", "processing", "delivery")


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """A window and a filter. Empty names mean all; long names are cut as figures cut them."""

    since: datetime
    until: datetime
    grain: str
    queue: str = ""
    endpoint: str = ""
    type: str = ""

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, name_limits.counted(getattr(self, name)))

    @property
    def may_be_several(self) -> bool:
        """Whether a name may be the cut beginning of several, which figures count as one."""
        return any(name_limits.may_be_cut(getattr(self, name)) for name in NAMES)

    def params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class MessageCounts(NamedTuple):
    """``succeeded``: None if unknown: a successful message names its endpoint, not its queue."""

    succeeded: int | None
    failed: int
    skewed: int

    @property
    def finished(self) -> int | None:
        return None if self.succeeded is None else self.succeeded + self.failed

    @property
    def share_failed(self) -> float | None:
        """0 to 1; None if nothing finished, or the number is unknown."""
        return self.failed / self.finished if self.finished else None


class Percentiles(NamedTuple):
    """Milliseconds, within one per cent."""

    p50: float
    p95: float
    p99: float


class Timings(NamedTuple):
    """``bands``: counts by band of latency_bands, empty ones left out."""

    percentiles: Percentiles
    bands: dict[int, int]


class MessageType(NamedTuple):
    name: str
    messages: int


class FailureCause(NamedTuple):
    """All failures of one fingerprint; ``message`` is without ids, texts and numbers."""

    fingerprint: str
    exception: str
    message: str
    first: datetime
    last: datetime
    messages: int
    is_new: bool  # not among the failures known from before the window, of which there are some


class SlowMessage(NamedTuple):
    """One type in a window: how many messages were timed, the median and 95th percentile in milliseconds, and the
    latter in the earlier window (None: none was timed there)."""

    type: str
    messages: int
    p50: float
    p95: float
    before: float | None


class MessageOutcome(NamedTuple):
    """One message that failed at an endpoint, from all batches. ``succeeded``: after its last failure, or None."""

    message_id: str
    endpoint: str
    type: str
    exception: str
    failed: int
    first: datetime
    last_failed: datetime
    succeeded: datetime | None
    of_all: int  # such messages in the window, and how many of them succeeded
    of_succeeded: int
    is_capped: bool  # only the newest were read, and there are more

    @property
    def has_whole_id(self) -> bool:
        """Whether its id is complete, so that it can be searched."""
        return not name_limits.may_be_cut(self.message_id)


def counts(asked: TrendQuery) -> dict[int, MessageCounts]:
    """By the Unix second at which a step begins; steps without finished messages are absent."""
    trends, parts = console_sql.trends, _parts()
    rows = _ask(trends.counts_of_cut(**parts) if _is_cut(asked) else trends.counts(**parts), asked)
    return {at: MessageCounts(_known(asked, succeeded), *others) for at, succeeded, *others in rows}


def nothing(asked: TrendQuery) -> MessageCounts:
    """The counts of a step in which nothing finished."""
    return MessageCounts(_known(asked, 0), 0, 0)


def _known(asked: TrendQuery, succeeded: int) -> int | None:
    return None if asked.queue and not succeeded else succeeded


def timings(asked: TrendQuery, measure: str) -> dict[int, Timings]:
    """One of MEASURES, by step; steps without timings are absent."""
    rows = _ask(_timings(asked, measure), asked, measure=measure, starts=bands.STARTS)
    return {
        at: Timings(Percentiles(*map(value, cuts)), dict(zip(found, numbers, strict=True)))
        for at, *cuts, found, numbers in rows
    }


def _timings(asked: TrendQuery, measure: str) -> Any:
    trends, filled = console_sql.trends, {**_parts(), "buckets": f"{measure}_buckets", "numbers": f"{measure}_counts"}
    if _is_cut(asked):
        return trends.timings_of_cut(timings=trends.timings, **filled)
    return trends.timings(**{**filled, "steps": trends.every_step})


def kinds(asked: TrendQuery) -> dict[str, list[MessageType]]:
    """Queues, endpoints and types (keys: NAMES) with finished messages, the busiest first."""
    trends = console_sql.trends
    counted = trends.counted_steps if asked.grain == "minute" else trends.counted_cut
    found: dict[str, list[MessageType]] = {name: [] for name in NAMES}
    for what, *kind in _ask(trends.kinds(counted=counted, **_parts()), asked):
        found[what].append(MessageType(*kind))
    return found


def last_day(chosen: dict[str, str]) -> datetime | None:
    """The last day (UTC) with finished messages of these NAMES, however long ago: days are kept for ever."""
    days = Rollup.objects.filter(grain="day")
    first, last = days.aggregate(first=Min("at"), last=Max("at")).values()
    if first is None:
        return None
    asked = TrendQuery(first, last + STEPS["day"], "day", **chosen)
    if _is_cut(asked):
        return _ask(console_sql.trends.last_of_cut(**_parts()), asked)[0][0]
    named = {name: getattr(asked, name) for name in chosen}
    return days.filter(**named).aggregate(last=Max("at"))["last"]


def _is_cut(asked: TrendQuery) -> bool:
    """Whether finalized figures can answer: hours and days, of all or of one name (closed_periods)."""
    return asked.grain != "minute" and sum(bool(getattr(asked, name)) for name in NAMES) < 2


def _parts() -> dict[str, Any]:
    """Parts that statements share; a part may contain the ones after it."""
    trends = console_sql.trends
    shared = ("asked", "figures", "percentiles", "every_step", "between", "of", "again")
    return {"steps": trends.steps_to_sum, **{name: getattr(trends, name) for name in shared}}


def failures(asked: TrendQuery, kept_from: datetime | None = None) -> list[FailureCause]:
    """The most frequent first. ``kept_from``: earlier failures were deleted; None: none were."""
    trends = console_sql.trends
    query = trends.failures(failed=trends.failed_minutes if asked.grain == "minute" else trends.failed_cut, **_parts())
    within = asked.queue if visible_queues.current() else ""  # failures elsewhere are hidden
    return [FailureCause(*row) for row in _ask(query, asked, kept_from=kept_from, within=within)]


def slowest(asked: TrendQuery, until: datetime, earlier: timedelta, measure: str) -> list[SlowMessage]:
    """At most twenty types, those with the highest 95th percentile first, by one of MEASURES.

    ``until``: not after the window's end; ``earlier``: how much earlier the window compared with began.
    """
    statements = console_sql.trends
    query = statements.slowest(
        buckets=f"{measure}_buckets", numbers=f"{measure}_counts", percentiles=statements.percentiles, of=statements.of
    )
    read = replace(asked, until=until)
    spans = [(False, *span) for span in few(asked.grain, asked.since, until)]
    spans += [(True, *span) for span in few(asked.grain, asked.since - earlier, asked.until - earlier)]
    are_before, grains, begins, ends = map(list, zip(*spans, strict=True))
    which = {"are_before": are_before, "grains": grains, "begins": begins, "ends": ends}
    rows = _ask(query, read, types=_maybe_slowest(read, measure), **which)
    return [
        SlowMessage(type_, messages, value(p50), value(p95), None if before is None else value(before))
        for type_, messages, p50, p95, before in rows
    ]


def _maybe_slowest(asked: TrendQuery, measure: str) -> list[str] | None:
    """Types that may be among the slowest: summing all buckets of years would take too long. None: any type may be,
    because nothing is finalized for this query."""
    if not _is_cut(asked) or any(getattr(asked, name) for name in NAMES):
        return None
    query = console_sql.trends.maybe_slowest(**_parts(), buckets=f"{measure}_buckets", numbers=f"{measure}_counts")
    return [type_ for (type_,) in _ask(query, asked, measure=measure, starts=bands.STARTS)]


def retry_outcomes(asked: TrendQuery) -> list[MessageOutcome]:
    """Messages that failed and what became of their retries, the last to fail first."""
    outcomes = console_sql.trends.retry_outcomes(of=console_sql.trends.of)
    return [MessageOutcome(*row) for row in _ask(outcomes, asked, most=OUTCOMES)]


def retried(asked: TrendQuery) -> dict[int, int]:
    """Messages that succeeded after a failure, by step. Unknown for a queue: see ``MessageCounts.succeeded``."""
    trends, parts = console_sql.trends, _parts()
    return dict(_ask(trends.retried_of_cut(**parts) if _is_cut(asked) else trends.retried(**parts), asked))


def _ask(query: Any, asked: TrendQuery, **more: Any) -> list[Any]:
    return rows_of(query, {**asked.params(), "step": STEPS[asked.grain], **more})
