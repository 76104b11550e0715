"""Which hours were unusual: judged when they are over, kept with their numbers, and told as stretches of time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db.models import Max, Q
from django.db.models.functions import Coalesce

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline.figures import weeks_before
from pgqueue_admin.pipeline.figures.histogram import value
from pgqueue_admin.pipeline.figures.usual import WEEKS
from pgqueue_admin.pipeline.figures.weeks_before import Subject
from pgqueue_admin.pipeline.judging import unusual
from pgqueue_admin.pipeline.judging.unusual import GROWTH, SILENCE, Found, Seen
from pgqueue_admin.records.asking import rows_of
from pgqueue_admin.records.models import Endpoint, HistoryBatch, HistorySource, Queue, Unusual
from pgqueue_admin.records.source import source

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
LASTING = timedelta(minutes=75)  # after its end: the next hour has to end, too, and to be judged
LOOKED_BACK = timedelta(days=7)  # for where a stretch began that reaches into a window


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hours in a row that were unusual in one way; ``worst`` has the numbers of that hour which was furthest off."""

    since: datetime
    until: datetime
    worst: Unusual


def judge_messages(hours: Sequence[datetime]) -> None:
    """Hours that were summed; what was said of them before is forgotten."""
    _keep(hours, ~Q(kind=GROWTH), list(_narrowed(_of_messages(hours))))


def judge_depths(hours: Sequence[datetime]) -> None:
    """Input queues, by what their samples were folded to. Other tables may grow."""
    _keep(hours, Q(kind=GROWTH), list(_of_depths(hours)))


def stretches(since: datetime, until: datetime, which: Q) -> list[Stretch]:
    """Those of ``which`` that reach into a window, the last to begin first."""
    rows = Unusual.objects.filter(which, at__gte=since - LOOKED_BACK, at__lt=until)
    found = [each for _, same in groupby(rows.order_by(*_KEY, "at"), _key) for each in _joined(same)]
    return sorted((each for each in found if each.until > since), key=lambda each: each.since, reverse=True)


def lasting(now: datetime) -> list[Stretch]:
    """Those that no hour has ended yet."""
    return stretches(now - LASTING, now, Q())


_KEY = ("kind", "queue", "endpoint", "type")


def _key(row: Unusual) -> tuple[str, ...]:
    return row.kind, row.queue, row.endpoint, row.type


def _joined(rows: Iterable[Unusual]) -> Iterator[Stretch]:
    """Hour after hour without a gap."""
    for _, run in groupby(enumerate(rows), lambda numbered: numbered[1].at - numbered[0] * HOUR):
        hours = [row for _, row in run]
        yield Stretch(hours[0].at, hours[-1].at + HOUR, max(hours, key=_excess))


def _excess(row: Unusual) -> float:
    """How far off; of silences, what is missing."""
    return row.median if row.kind == SILENCE else row.seen / max(row.high, 1)


def _of_messages(hours: Sequence[datetime]) -> Iterator[Unusual]:
    usual = postgresql().usual
    rows = rows_of(usual.seen(of=usual.of_each), {"at": list(hours)})
    seen = {(at, Subject(*names)): _seen(*figures) for at, *names, figures in ((*row[:4], row[4:]) for row in rows)}
    unread = {int(hour.timestamp()) for last in _ends_of_gone() for hour in hours if _is_without(last, hour)}
    for (at, subject), known in weeks_before.of_each(hours).items():
        here = seen.get((at, subject), Seen())
        for found in unusual.of_messages(here, known):
            if found.kind != SILENCE or at not in unread:
                yield _row(found, at, subject, here)


def _ends_of_gone() -> list[datetime]:
    """Up to when tables were read that are gone, and told something: since then nobody knows what finished there."""
    told = Q(batches__state=HistoryBatch.State.DONE, batches__kept__gt=0)
    last = Coalesce("complete_to", Max("batches__complete_to", filter=told))
    gone = HistorySource.objects.filter(told, is_there=False).annotate(last=last)
    return list(gone.values_list("last", flat=True))


def _is_without(last: datetime, hour: datetime) -> bool:
    """Whether the weeks that this hour is compared with have what a table told that is gone, and the hour has not."""
    return hour - WEEKS * WEEK <= last < hour + HOUR


def _seen(messages: int, failed: int, timed: int | None, *buckets: int | None) -> Seen:
    p95, fifth = (None if each is None else value(each) for each in buckets)
    return Seen(messages, failed, p95, fifth, timed)


def _of_depths(hours: Sequence[datetime]) -> Iterator[Unusual]:
    queues = {queue.pk: queue for queue in Queue.objects.filter(kind="input", gone_since=None)}
    rows = rows_of(postgresql().usual.seen_depth(), {"at": list(hours), "queues": list(queues)})
    known = weeks_before.of_depths("hour", hours, queues)
    names = {(each.schema, each.table): each.name for each in Endpoint.objects.all()}
    for at, pk, median in rows:
        for found in unusual.of_depth(median, known.get((at, pk))):
            yield _row(found, at, _subject(queues[pk], names), None)


def _subject(queue: Queue, names: Mapping[tuple[str, str], str]) -> Subject:
    """Of a depth the queue is known for certain, and its endpoint where somebody named it."""
    place = queue.schema, queue.table
    return Subject(source().dialect.canonical(Address(*place)), names.get(place, ""))


def _row(found: Found, at: int, subject: Subject, seen: Seen | None) -> Unusual:
    usual, band = found.usual, found.band
    numbers = {"seen": found.seen, "median": usual.median, "weeks": usual.weeks, **band._asdict()}
    instant = datetime.fromtimestamp(at, UTC)
    counted = {"messages": seen.messages, "timed": seen.timed} if seen else {}
    return Unusual(kind=found.kind, at=instant, **counted, **subject._asdict(), **numbers)


def _narrowed(rows: Iterable[Unusual]) -> Iterator[Unusual]:
    """Once is enough: the types where some are found, of a silence the whole queue where all of it is silent."""
    ordered = sorted(rows, key=lambda row: (row.kind, row.at, row.queue, row.endpoint, row.type))
    for (kind, *_), same in groupby(ordered, lambda row: (row.kind, row.at, row.queue, row.endpoint)):
        rows_here = list(same)
        whole, types = ([row for row in rows_here if bool(row.type) == typed] for typed in (False, True))
        yield from (whole or types) if kind == SILENCE else (types or whole)


def _keep(hours: Sequence[datetime], which: Q, found: list[Unusual]) -> None:
    Unusual.objects.filter(which, at__in=hours).delete()
    Unusual.objects.bulk_create(found)
