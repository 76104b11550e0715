"""Tables in which messages lie and that history was never begun with: the ledger has no row for them."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Min

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline.tables import ARCHIVE
from pgqueue_admin.records import samples
from pgqueue_admin.records.models import ArchiveSample, HistorySource, Process, Queue, Sample


def unbegun() -> list[tuple[str, datetime]]:
    """Each with the time from which on it could have been read: when somebody first saw a message there, and a process
    for history had started. As the sampler sees it: dead messages in the archive, any in an audit queue."""
    known = set(HistorySource.objects.values_list("table", flat=True))
    found = [*_archive(known), *_audits(known)]
    if found and (started := Process.objects.filter(role="pipeline").aggregate(first=Min("started_at"))["first"]):
        return [(table, max(seen, started)) for table, seen in found]
    return found


def why() -> str:
    """What the process says that should have read them."""
    process = Process.objects.filter(role="pipeline").order_by("-heartbeat_at").first()
    return process.last_error.strip().partition("\n")[0] if process else "No process for history has ever run."


def _archive(known: set[str]) -> Iterator[tuple[str, datetime]]:
    newest = samples.archive() if ARCHIVE not in known else None
    if newest and newest.dead:
        yield ARCHIVE, ArchiveSample.objects.filter(dead__gt=0).earliest("at").at


def _audits(known: set[str]) -> Iterator[tuple[str, datetime]]:
    for queue in Queue.objects.filter(kind="audit", gone_since=None, latest__depth__gt=0).select_related("latest"):
        if (address := postgresql().canonical(Address(queue.schema, queue.table))) not in known:
            first = Sample.objects.filter(queue=queue, depth__gt=0).order_by("at").first()
            yield address, first.at if first else queue.latest.at
