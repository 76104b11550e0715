"""Totals of finished hours and days for baselines, summed from rollups; summed again when batches add to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.history import ledger
from pgqueue_admin.history.anomalies import findings
from pgqueue_admin.history.rollups.baseline import WEEKS
from pgqueue_admin.models import Anomaly, BaselineBucket, HistoryBatch, RecomputeRequest
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.time_grains import floor
from pgqueue_admin.models.trends_retention import kept_for

NONE, HOUR, DAY = timedelta(), timedelta(hours=1), timedelta(days=1)
KEPT_FOR = {"hour": timedelta(days=182), "day": timedelta(days=800)}
AT_ONCE = 24  # hours per transaction: with many queues and types an hour takes a second
SAMPLED = timedelta(hours=48)  # depths are folded without batches, so these hours are judged again and again


@dataclass(frozen=True, slots=True)
class _DueHours:
    """``hours`` to sum, up to where history ends: new ones, and those touched by ``batches`` and ``days``."""

    until: datetime
    hours: list[datetime]
    batches: list[int]
    days: list[RecomputeRequest]

    def parts(self) -> Iterator[list[datetime]]:
        """Oldest first, because later hours are compared with them."""
        for place in range(0, len(self.hours), AT_ONCE):
            yield self.hours[place : place + AT_ONCE]


def see(now: datetime) -> int:
    """Sum and judge due hours that are over, up to where history is complete; return how many."""
    seen = 0
    if due := _due(now):
        for hours in due.parts():
            if not _some(hours, due.until):
                return seen
            seen += len(hours)
        _summed(due, now)
    findings.judge_depths(list(_hours(floor(now - SAMPLED, "hour"), floor(now, "hour"))))
    for grain, kept in KEPT_FOR.items():
        BaselineBucket.objects.filter(grain=grain, at__lt=now - kept).delete()
    Anomaly.objects.filter(at__lt=now - KEPT_FOR["hour"]).delete()
    return seen


def newest() -> datetime | None:
    """Up to which time hours were judged: the row of all kinds exists for each."""
    last = _of_all().order_by("-at").values_list("at", flat=True).first()
    return last + HOUR if last else None


def oldest() -> datetime | None:
    """The first kept hour; hours enough weeks later can be judged."""
    return _of_all().order_by("at").values_list("at", flat=True).first()


def _of_all() -> QuerySet[BaselineBucket]:
    return BaselineBucket.objects.filter(grain="hour", queue="", endpoint="", type="")


def _due(now: datetime) -> _DueHours | None:
    complete, earliest = ledger.watermark(), _earliest(now)
    begun = newest() or rows_of(console_sql.baseline.first_hour(), {"since": earliest})[0][0]
    if complete is None or begun is None:
        return None
    until = floor(complete, "hour")
    batches = list(HistoryBatch.objects.filter(state="done", aggregated_at=None).values_list("pk", flat=True))
    again = list(RecomputeRequest.objects.exclude(recomputed_at=None).filter(aggregated_at=None))
    touched = {at for (at,) in rows_of(console_sql.baseline.touched(), {"batches": batches})}
    touched.update(*(_hours(day.begin, day.begin + DAY) for day in again))
    hours = sorted({at for at in touched if earliest <= at < begun} | set(_hours(max(begun, earliest), until)))
    return _DueHours(until, hours, batches, again)


def _summed(due: _DueHours, now: datetime) -> None:
    """Unfinished hours of these batches and days become due by themselves."""
    HistoryBatch.objects.filter(pk__in=due.batches).update(aggregated_at=now)
    for day in due.days:
        RecomputeRequest.objects.filter(pk=day.pk, recomputed_at=day.recomputed_at).update(aggregated_at=now)


def _earliest(now: datetime) -> datetime:
    """The first hour that may be summed again. If its rollups were deleted, a late batch restores only a part of an
    hour: such an hour keeps its sums."""
    return floor(now - min(KEPT_FOR["hour"], kept_for().get("hour", KEPT_FOR["hour"])) + HOUR, "hour")


@transaction.atomic
def _some(hours: list[datetime], until: datetime) -> bool:
    """False: another process is summing; the rest is due again."""
    if not rows_of(console_sql.baseline.alone(), {})[0][0]:
        return False
    before = newest() or hours[0]
    _sum("hour", hours)
    _sum("day", sorted({day for hour in hours if (day := floor(hour, "day")) + DAY <= until}))
    findings.judge_depths(hours)
    findings.judge_messages(sorted({*hours, *(later for hour in hours for later in _later(hour) if later < before)}))
    return True


def _sum(grain: str, at: list[datetime]) -> None:
    usual = console_sql.baseline
    BaselineBucket.objects.filter(grain=grain, at__in=at).delete()
    run(usual.see(subject=usual.subject, subjects=usual.subjects), {"grain": grain, "at": at})


def _later(hour: datetime) -> Iterator[datetime]:
    """The hours compared with this one, as in the statement ``weeks``. When clocks change: both hours shown alike after
    setting back; after setting forward, the first hour in place of the skipped one; and for half-hour changes, those
    that begin within this hour."""
    zone = ZoneInfo(settings.PGQUEUE["BASELINE_TIME_ZONE"])
    local, skipped = _shown(hour, zone), _shown(hour, zone) - _shown(hour - HOUR, zone) - HOUR
    begins = {local, local - max(skipped, NONE)}
    for week in range(1, WEEKS + 1):
        later = ((shown + half + week * 7 * DAY).replace(tzinfo=zone) for shown in begins for half in (NONE, HOUR / 2))
        yield from {floor(each.replace(fold=fold).astimezone(UTC), "hour") for each in later for fold in (0, 1)}


def _shown(hour: datetime, zone: ZoneInfo) -> datetime:
    return hour.astimezone(zone).replace(tzinfo=None)


def _hours(since: datetime, until: datetime) -> Iterator[datetime]:
    while since < until:
        yield since
        since += HOUR
