"""Storage of samples: the newest of each queue, ten-second history for charts, and its thinning."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.models import ArchiveSample, LatestSample, Queue, Sample, notify
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.sample import SampleFields

HISTORY_EVERY = timedelta(seconds=10)
FINE_FOR = timedelta(hours=2)
KEPT_FOR = timedelta(days=8)
_THINNED_BACK = timedelta(days=1)  # earlier runs have thinned what is older
SILENT = "Nobody has looked since: the process that looks at this database is silent. See Workers."
_CHUNK = 100  # queues per statement: a short transaction of its own

_FIGURES = [field.name for field in SampleFields._meta.get_fields()]
_LATEST = [field.name for field in LatestSample._meta.concrete_fields if not field.primary_key]


def store(
    changed: Sequence[LatestSample],
    unchanged: Iterable[int],
    at: datetime,
    history: bool,
    unread: Mapping[int, str] | None = None,
) -> None:
    """Store one sample of all queues and wake the pages, in one transaction.

    ``unchanged``: ids of queues whose figures equal the sample before; only their time is updated. ``unread``: why
    other queues could not be read; history gets a row without figures for each, so that no sum counts as complete.
    """
    with transaction.atomic():
        LatestSample.objects.bulk_create(changed, update_conflicts=True, unique_fields=["queue"], update_fields=_LATEST)
        still = list(unchanged)
        # clears the error if another sampler has marked this one silent
        LatestSample.objects.filter(queue__in=still).update(at=at, error="", sqlstate="")
        if history:
            latest = LatestSample.objects.filter(queue__in=[*still, *(each.queue_id for each in changed)])
            blank = [Sample(queue_id=queue, at=at, error=error) for queue, error in (unread or {}).items()]
            Sample.objects.bulk_create([*(_as_history(each) for each in latest), *blank])
        notify.announce(notify.SAMPLE, str(number(at)))


def store_archive(dead: int, at: datetime, history: bool) -> None:
    """Store the number of dead messages in the archive if it changed, and for history."""
    newest = archive()
    if history or newest is None or newest.dead != dead:
        ArchiveSample.objects.create(at=at, dead=dead)


def archive() -> ArchiveSample | None:
    """The newest count of the archive's dead, by insertion: a clock may step back."""
    return ArchiveSample.objects.order_by("-pk").first()


def mark_unreadable(error: str, queues: Iterable[int] | None = None, *, sqlstate: str = "") -> None:
    """Record why there are no new figures, with the server's SQLSTATE. The last figures and their time stay."""
    rows = LatestSample.objects.filter(queue__gone_since=None)
    rows = rows if queues is None else rows.filter(queue__in=list(queues))
    if rows.exclude(error=error, sqlstate=sqlstate).update(error=error, sqlstate=sqlstate):
        notify.announce(notify.SAMPLE, "error")


def mark_silent(queues: QuerySet[Queue], since: datetime) -> None:
    """Mark the queues of a silent sampler, those without a sample since ``since``: their figures are old."""
    old = LatestSample.objects.filter(queue__gone_since=None, queue__in=queues, at__lt=since, error="")
    if old.update(error=SILENT, sqlstate=""):
        notify.announce(notify.SAMPLE, "error")


def number(at: datetime) -> int:
    """Sample number: increases with time, across restarts of the sampler."""
    return round(at.timestamp() * 1000)


def latest() -> dict[int, LatestSample]:
    """The newest figures by queue id, of queues that exist."""
    return {each.queue_id: each for each in LatestSample.objects.filter(queue__gone_since=None)}


def history(queue: Queue, window: timedelta, until: datetime) -> list[Sample]:
    """One queue's samples of a window, oldest first. Draw no line through a gap in time."""
    return list(queue.samples.filter(at__gt=until - window, at__lte=until).order_by("at"))


def steps(queue_id: int, since: datetime, step: int) -> dict[int, tuple[Any, ...]]:
    """One queue's ready, in flight, delayed, expired, in, out, dead, and how its depth is known, by step number.

    ``step``: seconds.
    """
    query = console_sql.samples.steps(worst=console_sql.samples.worst)
    found = rows_of(query, {"queue": queue_id, "since": since, "step": step})
    return {row[0]: row[1:] for row in found}


def most_ready(queue_ids: Iterable[int], since: datetime, step: int) -> list[tuple[int, int, int | None]]:
    """Queue, step number, most ready messages in the step."""
    return rows_of(console_sql.samples.most_ready(), {"queues": list(queue_ids), "since": since, "step": step})


def thin(now: datetime) -> int:
    """Keep one sample a minute after two hours and none after eight days; return how many were deleted."""
    gone = sum(model.objects.filter(at__lt=now - KEPT_FOR).delete()[0] for model in (Sample, ArchiveSample))
    until, queues = now - FINE_FOR, list(Queue.objects.order_by("pk").values_list("pk", flat=True))
    about = {"since": until - _THINNED_BACK, "until": until}
    chunks = (queues[start : start + _CHUNK] for start in range(0, len(queues), _CHUNK))
    thinned = sum(run(console_sql.samples.thin(), {**about, "queues": chunk}) for chunk in chunks)
    return gone + thinned


def _as_history(latest: LatestSample) -> Sample:
    return Sample(queue_id=latest.queue_id, **{name: getattr(latest, name) for name in _FIGURES})
