"""Anomalies of finished hours: judged, stored with their numbers, merged into stretches of time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db.models import Max, Q
from django.db.models.functions import Coalesce

from pgqueue_admin.dialects import Address
from pgqueue_admin.history.anomalies import detector
from pgqueue_admin.history.anomalies.detector import GROWTH, SILENCE, Detection, ObservedHour
from pgqueue_admin.history.rollups import baseline
from pgqueue_admin.history.rollups.baseline import WEEKS, BaselineSubject
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models import Anomaly, Endpoint, HistoryBatch, HistorySource, Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.raw_sql import console_sql, rows_of

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
LASTING = timedelta(minutes=75)  # after its end: the next hour must end and be judged
LOOKED_BACK = timedelta(days=7)  # to find the beginning of a period that reaches into a window


@dataclass(frozen=True, slots=True)
class AnomalyPeriod:
    """Consecutive hours with one kind of anomaly; ``worst`` is the hour furthest outside its band."""

    since: datetime
    until: datetime
    worst: Anomaly


def judge_messages(hours: Sequence[datetime]) -> None:
    """Judge summed hours; replaces their earlier findings."""
    _keep(hours, ~Q(kind=GROWTH), list(_narrowed(_of_messages(hours))))


def judge_depths(hours: Sequence[datetime]) -> None:
    """Judge the depths of input queues, by folded samples. Other tables may grow."""
    _keep(hours, Q(kind=GROWTH), list(_of_depths(hours)))


def stretches(since: datetime, until: datetime, which: Q) -> list[AnomalyPeriod]:
    """Periods of ``which`` that reach into a window, the latest beginning first."""
    rows = Anomaly.objects.filter(which, at__gte=since - LOOKED_BACK, at__lt=until)
    found = [each for _, same in groupby(rows.order_by(*_KEY, "at"), _key) for each in _joined(same)]
    return sorted((each for each in found if each.until > since), key=lambda each: each.since, reverse=True)


def lasting(now: datetime) -> list[AnomalyPeriod]:
    """Periods that no later hour has ended yet."""
    return stretches(now - LASTING, now, Q())


_KEY = ("kind", "queue", "endpoint", "type")


def _key(row: Anomaly) -> tuple[str, ...]:
    return row.kind, row.queue, row.endpoint, row.type


def _joined(rows: Iterable[Anomaly]) -> Iterator[AnomalyPeriod]:
    """Merge consecutive hours."""
    for _, run in groupby(enumerate(rows), lambda numbered: numbered[1].at - numbered[0] * HOUR):
        hours = [row for _, row in run]
        yield AnomalyPeriod(hours[0].at, hours[-1].at + HOUR, max(hours, key=_excess))


def _excess(row: Anomaly) -> float:
    """Distance outside the band; for a silence, the messages missing."""
    return row.median if row.kind == SILENCE else row.observed / max(row.high, 1)


def _of_messages(hours: Sequence[datetime]) -> Iterator[Anomaly]:
    usual = console_sql.baseline
    rows = rows_of(usual.seen(of=usual.of_each), {"at": list(hours)})
    seen = {
        (at, BaselineSubject(*names)): _seen(*figures) for at, *names, figures in ((*row[:4], row[4:]) for row in rows)
    }
    unread = {int(hour.timestamp()) for last in _ends_of_gone() for hour in hours if _is_without(last, hour)}
    for (at, subject), known in baseline.of_each(hours).items():
        here = seen.get((at, subject), ObservedHour())
        for found in detector.of_messages(here, known):
            if found.kind != SILENCE or at not in unread:
                yield _row(found, at, subject, here)


def _ends_of_gone() -> list[datetime]:
    """End of history for each gone table that once had messages: what finished there later is unknown."""
    told = Q(batches__state=HistoryBatch.State.DONE, batches__kept__gt=0)
    last = Coalesce("watermark", Max("batches__watermark", filter=told))
    gone = HistorySource.objects.filter(told, exists=False).annotate(last=last)
    return list(gone.values_list("last", flat=True))


def _is_without(last: datetime, hour: datetime) -> bool:
    """Whether the weeks compared with this hour include a gone table's messages, and this hour does not."""
    return hour - WEEKS * WEEK <= last < hour + HOUR


def _seen(messages: int, failed: int, timed: int | None, *buckets: int | None) -> ObservedHour:
    p95, fifth = (None if each is None else value(each) for each in buckets)
    return ObservedHour(messages, failed, p95, fifth, timed)


def _of_depths(hours: Sequence[datetime]) -> Iterator[Anomaly]:
    queues = {queue.pk: queue for queue in Queue.objects.filter(kind__in=("input", "lease"), gone_since=None)}
    rows = rows_of(console_sql.baseline.seen_depth(), {"at": list(hours), "queues": list(queues)})
    known = baseline.of_depths("hour", hours, queues)
    names = {(each.schema, each.table): each.name for each in Endpoint.objects.all()}
    for at, pk, median in rows:
        for found in detector.of_depth(median, known.get((at, pk))):
            yield _row(found, at, _subject(queues[pk], names), None)


def _subject(queue: Queue, names: Mapping[tuple[str, str], str]) -> BaselineSubject:
    """The queue of a depth is certain; its endpoint is known only if one is declared."""
    place = queue.schema, queue.table
    return BaselineSubject(queue_database().dialect.canonical(Address(*place)), names.get(place, ""))


def _row(found: Detection, at: int, subject: BaselineSubject, seen: ObservedHour | None) -> Anomaly:
    usual, band = found.usual, found.band
    numbers = {"observed": found.observed, "median": usual.median, "weeks": usual.weeks, **band._asdict()}
    instant = datetime.fromtimestamp(at, UTC)
    counted = {"messages": seen.messages, "timed": seen.timed} if seen else {}
    return Anomaly(kind=found.kind, at=instant, **counted, **subject._asdict(), **numbers)


def _narrowed(rows: Iterable[Anomaly]) -> Iterator[Anomaly]:
    """Report each anomaly once: by types if any are found; a silence by the whole queue if all of it is silent."""
    ordered = sorted(rows, key=lambda row: (row.kind, row.at, row.queue, row.endpoint, row.type))
    for (kind, *_), same in groupby(ordered, lambda row: (row.kind, row.at, row.queue, row.endpoint)):
        rows_here = list(same)
        whole, types = ([row for row in rows_here if bool(row.type) == typed] for typed in (False, True))
        yield from (whole or types) if kind == SILENCE else (types or whole)


def _keep(hours: Sequence[datetime], which: Q, found: list[Anomaly]) -> None:
    Anomaly.objects.filter(which, at__in=hours).delete()
    Anomaly.objects.bulk_create(found)
