"""Tables in which messages lie and that history was never begun with: the ledger has no row for them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models.functions import Coalesce

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.sources.tables import ARCHIVE
from pgqueue_admin.models import ArchiveSample, HistorySource, Process, Queue, Sample, processes, samples

_NEVER = "No process for history has ever run."


def unbegun(gap: timedelta) -> list[tuple[str, datetime]]:
    """Each with the time from which on it could have been read: when somebody first saw a message there, and processes
    for history ran, with no longer a ``gap`` since. As the sampler sees it: dead messages in the archive, any in an
    audit queue."""
    known = set(HistorySource.objects.values_list("table", flat=True))
    found = [*_archive(known), *_audits(known)]
    if found and (started := _started(gap)):
        return [(table, max(seen, started)) for table, seen in found]
    return found


def _started(gap: timedelta) -> datetime | None:
    """When the first of those processes did that followed one another up to now; None: there was never any.

    After a longer gap history had been switched off: who ran before it says nothing of what could be read since.
    """
    started: datetime | None = None
    ran = Process.objects.filter(role="history").annotate(last=Coalesce("ended_at", "heartbeat_at"))
    for began, last in ran.order_by("-last").values_list("started_at", "last"):
        if started and started - last > gap:
            break
        started = min(started or began, began)
    return started


def why() -> str:
    """What the process says that should read them now; of those that are over, the last."""
    runs = processes.heard_of().filter(role="history").order_by("-heartbeat_at").first()
    last = runs or Process.objects.filter(role="history").order_by("-heartbeat_at").first()
    if last is None:
        return _NEVER
    said: str = last.last_error.strip().partition("\n")[0]
    return said if runs else f"No process for history runs. {said}".strip()


def _archive(known: set[str]) -> Iterator[tuple[str, datetime]]:
    newest = samples.archive() if ARCHIVE not in known else None
    if newest and newest.dead:
        yield ARCHIVE, ArchiveSample.objects.filter(dead__gt=0).earliest("at").at


def _audits(known: set[str]) -> Iterator[tuple[str, datetime]]:
    for queue in Queue.objects.filter(kind="audit", gone_since=None, latest__depth__gt=0).select_related("latest"):
        if (address := postgresql().canonical(Address(queue.schema, queue.table))) not in known:
            first = Sample.objects.filter(queue=queue, depth__gt=0).order_by("at").first()
            yield address, first.at if first else queue.latest.at
