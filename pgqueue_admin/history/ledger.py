"""The ledger of batches: planned, tried, done. Exactly once: one transaction completes a batch."""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import connections, transaction
from django.db.models import F, Func, Min, QuerySet, Value
from django.db.models.functions import Greatest, Now

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.history.rollups.copy_format import BatchRollups
from pgqueue_admin.history.sources import retry_backoff
from pgqueue_admin.history.sources.tables import SNAPSHOTS
from pgqueue_admin.history.sources.timelines import Timeline
from pgqueue_admin.models import DataFile, FileBatch, HistoryBatch, HistorySource

log = logging.getLogger(__name__)
BEFORE_ALL = "3:3:"  # the snapshot before the first transaction of a cluster
OPEN = (HistoryBatch.State.PLANNED, HistoryBatch.State.RUNNING)
_SAID = "Somebody said how to go on with its table: it is planned anew."
_NO_HEAD: dict[str, Any] = {"candidate_max_seq": None, "candidate_at": None, "open_transactions": []}


class Superseded(Exception):
    """Another attempt owns this batch, or it was ended meanwhile: nothing of this attempt was committed."""


def open_batch(source: HistorySource) -> HistoryBatch | None:
    return source.batches.filter(state__in=OPEN).first()


@transaction.atomic
def planned(source: HistorySource, found: Any, is_last: bool) -> HistoryBatch | None:
    """The open batch, maybe another driver's. None: the source has moved since it was read."""
    if _unmoved(source).select_for_update().first() is None:
        return None
    _unmoved(source).update(**_log(found.written, found.at))
    return open_batch(source) or HistoryBatch.objects.create(
        source=source,
        snapshot_from=found.snapshot_from,
        snapshot_to=found.snapshot_to,
        seq_lo=found.seq_lo,
        seq_hi=found.seq_hi,
        rows=found.rows,
        seq_checksum=found.seq_checksum,
        relfilenodes=found.relfilenodes,
        is_last=is_last,
        watermark=found.at,
    )


def nothing_came(source: HistorySource, found: Any) -> None:
    """Mark the source complete up to now."""
    changes = {"snapshot": found.snapshot_to, "snapshot_target": "", "seq_done": 0} if found.snapshot_to else {}
    changes |= _log(found.written, found.at)
    _unmoved(source).update(watermark=found.at, looked_at=Now(), blocked_reason="", **_NO_HEAD, **changes)


def _log(written: int, at: datetime) -> dict[str, Any]:
    """The server's WAL position once all that is known of a source had been seen; it never goes back."""
    return {"wal_flush_lsn": Greatest(F("wal_flush_lsn"), written), "wal_flush_at": Greatest(F("wal_flush_at"), at)}


def _unmoved(source: HistorySource) -> QuerySet[HistorySource]:
    """The source row, guarded by the position we read.

    Matches nothing if another process advanced it, so no range is read twice.
    """
    return _same(source).filter(
        snapshot=source.snapshot, snapshot_target=source.snapshot_target, seq_done=source.seq_done
    )


def _same(source: HistorySource) -> QuerySet[HistorySource]:
    """Its row, unless its table or server was found, or declared by a person, to be another one."""
    same = {name: getattr(source, name) for name in ("cursor_kind", "oid", "sequence_file", "cluster")}
    return HistorySource.objects.filter(pk=source.pk, **same)


def to_go_on(source: HistorySource, where: str = "nothing was lost (pg_upgrade, a switchover)") -> str:
    """The statement with which a person resumes the source, ready to copy."""
    change, table = "cluster = ''" if source.cursor_kind == SNAPSHOTS else "oid = null", source.table.replace("'", "''")
    statement = f"""update pgqueue_console.pgqueue_historysource set {change} where "table" = '{table}';"""
    return f"Where {where}, run this on the console's database: {statement}"


def held_back(source: HistorySource, why: str) -> None:
    HistorySource.objects.filter(pk=source.pk).update(looked_at=Now(), blocked_reason=why)


def went_wrong(source: HistorySource, why: str) -> None:
    """Record that the source is not read in this turn and, after repeated failures, not until its backoff ends."""
    then = retry_backoff.said(source)
    held_back(source, f"{why[:500].rstrip('.')}. {then}" if then else why[:500])


def head_seen(source: HistorySource, head: int, at: datetime, writers: list[str]) -> None:
    """Store the highest number and the transactions then writing: numbers up to it are final once these have ended."""
    source.candidate_max_seq, source.candidate_at, source.open_transactions = head, at, writers
    _unmoved(source).update(candidate_max_seq=head, candidate_at=at, open_transactions=writers)


@transaction.atomic
def is_of(source: HistorySource, oid: int, sequence_file: int | None, line: Timeline) -> None:
    """Record which table, sequence start and server the source's numbers belong to. After a person's resume, earlier
    batches are abandoned; the head seen is dropped then, and on a new timeline."""
    if (source.oid, source.sequence_file, source.cluster, source.timeline_start_lsn) == (oid, sequence_file, *line):
        return
    said, is_other = source.oid is None, source.cluster != line.cluster
    known = {"oid": oid, "sequence_file": sequence_file, **_on(line, said)}
    known |= _NO_HEAD if said or is_other else {}
    _became(source, known, _left(source) if said else [], _SAID)


def was_renamed(source: HistorySource, oid: int, sequence_file: int | None, server: str) -> None:
    """Skip what was read of the same table under another name. ``server``: as at the beginning of ``cluster``."""
    same = HistorySource.objects.filter(oid=oid, sequence_file=sequence_file, cluster__startswith=f"{server}/")
    furthest = same.exclude(pk=source.pk).order_by("seq_done").last()
    if furthest is None or furthest.seq_done <= source.seq_done:
        return
    if _unmoved(source).update(seq_done=furthest.seq_done, **_NO_HEAD):
        log.warning("History: %s was read as %s up to %s.", source.table, furthest.table, furthest.seq_done)
    source.refresh_from_db()


@transaction.atomic
def comes_from(source: HistorySource, line: Timeline, oid: int | None) -> None:
    """Record which server the source's transaction ids belong to, if any, and which table holds them. If a person
    resumed the source, open batches are abandoned."""
    if (source.cluster, source.timeline_start_lsn, source.oid) == (*line, oid):
        return
    said = not source.cluster
    _became(source, {"oid": oid, **_on(line, said)}, _left(source) if said else [], _SAID)


def _on(line: Timeline, said: bool) -> dict[str, Any]:
    """A person's resume holds for this timeline's WAL: a position recorded on another one is dropped."""
    known = {"cluster": line.cluster, "timeline_start_lsn": line.began}
    return {**known, "wal_flush_lsn": None, "wal_flush_at": None} if said else known


@transaction.atomic
def adopted(source: HistorySource) -> None:
    """Read the source by transaction from now on. Rows up to ``seq_done`` were read: the first difference leaves them
    out, and every later row has a higher number."""
    why = "engine_schema has adopted its table: it is planned anew, by transaction."
    _became(source, {"cursor_kind": SNAPSHOTS, **_NO_HEAD}, _left(source), why)


def _left(source: HistorySource) -> list[HistoryBatch]:
    """Its open batches, locked before the source, as in ``done``."""
    return list(source.batches.filter(state__in=OPEN).select_for_update())


def _became(source: HistorySource, known: dict[str, Any], left: list[HistoryBatch], why: str) -> None:
    """Update the source and abandon the batches ``left``, unless the source has moved meanwhile."""
    if _unmoved(source).update(**known):
        for name, value in known.items():
            setattr(source, name, value)
        _give_up([each.pk for each in left], why)


def begin(batch: HistoryBatch, code_version: str) -> UUID:
    """Start a new attempt: earlier attempts can no longer commit."""
    token = uuid4()
    changed = HistoryBatch.objects.filter(pk=batch.pk, state__in=OPEN).update(
        state=HistoryBatch.State.RUNNING,
        token=token,
        attempt_tokens=Func(F("attempt_tokens"), Value(token), function="array_append"),
        attempt=F("attempt") + 1,
        started_at=Now(),
        ended_at=None,
        code_version=code_version,
        step="",
        error="",
    )
    if not changed:
        raise Superseded(f"Batch {batch.pk} is no longer open.")
    return token


def reached(batch: HistoryBatch, token: UUID, step: str) -> None:
    """Record the attempt's progress, for display. Raises Superseded if it can no longer commit."""
    mine = HistoryBatch.objects.filter(pk=batch.pk, token=token, state=HistoryBatch.State.RUNNING)
    if not mine.update(step=step):
        raise Superseded(f"Batch {batch.pk} has another attempt, or was ended.")


def is_mine(batch: HistoryBatch, token: UUID) -> bool:
    """Whether this attempt may still commit: it was not cancelled, and no other attempt began."""
    return HistoryBatch.objects.filter(pk=batch.pk, token=token, state=HistoryBatch.State.RUNNING).exists()


def failed(batch: HistoryBatch, token: UUID, error: str) -> None:
    """Leave the batch planned, to be tried again; after repeated failures, with a backoff."""
    mine = HistoryBatch.objects.filter(pk=batch.pk, token=token, state=HistoryBatch.State.RUNNING)
    mine.update(state=HistoryBatch.State.PLANNED, step="", ended_at=Now(), error=error[:2000])


@transaction.atomic
def not_as_planned(batch: HistoryBatch, token: UUID, why: str) -> None:
    """Abandon a batch that can never end because its table has changed. The present rows are planned anew."""
    mine = HistoryBatch.objects.filter(pk=batch.pk, token=token, state=HistoryBatch.State.RUNNING)
    if _give_up(mine.select_for_update().values_list("pk", flat=True), why):
        held_back(batch.source, f"{why} {retry_backoff.said(batch.source) or 'What is there now is read soon.'}")


@transaction.atomic
def of_gone_tables() -> None:
    """Abandon batches of gone tables: they can never be read. If a table comes back, it is planned anew."""
    left = HistoryBatch.objects.filter(source__exists=False, state__in=OPEN).select_for_update(of=("self",))
    _give_up(left.values_list("pk", flat=True), "Its table was dropped or renamed, or is no audit queue now.")


def _give_up(batches: Iterable[int], why: str) -> int:
    ended = {"state": HistoryBatch.State.ABANDONED, "token": None, "step": "", "ended_at": Now(), "error": why}
    return HistoryBatch.objects.filter(pk__in=list(batches)).update(**ended)


@transaction.atomic
def done(
    batch: HistoryBatch,
    token: UUID,
    kept: int,
    rejected: dict[str, int],
    files: Iterable[DataFile],
    figures: Iterable[BatchRollups],
) -> None:
    """Commit ledger, manifest, figures and the source's position together. Raises Superseded."""
    mine = HistoryBatch.objects.filter(pk=batch.pk, token=token, state=HistoryBatch.State.RUNNING)
    if not mine.update(state=HistoryBatch.State.DONE, step="", ended_at=Now(), kept=kept, rejected=rejected, error=""):
        raise Superseded(f"Batch {batch.pk} has another attempt, or was ended.")
    _name(batch, files)
    count(batch, figures)
    closed_periods.doubt(batch)
    _move_on(batch)


def _name(batch: HistoryBatch, files: Iterable[DataFile]) -> None:
    named = DataFile.objects.bulk_create(files)
    FileBatch.objects.bulk_create([FileBatch(file=file, batch=batch, rows=file.rows) for file in named])


def count(batch: HistoryBatch | None, figures: Iterable[BatchRollups]) -> None:
    """Insert by COPY: a batch has thousands of figures, and the source's next batch waits for them."""
    number = batch.pk if batch else None
    for each in figures:
        table, columns = each.model._meta.db_table, ("batch_id", *each.names)
        load = postgresql().history.load_figures(table=table, columns=columns)
        with connections["default"].cursor() as cursor, cursor.copy(load) as copy:
            for lines in each.lines(number):
                copy.write(lines)


def _move_on(batch: HistoryBatch) -> None:
    source = batch.source
    changes: dict[str, Any] = {"seq_done": batch.seq_hi, "looked_at": Now(), "blocked_reason": ""}
    if batch.snapshot_to:
        changes |= _next_snapshot(batch)
    if batch.is_last:
        changes |= {"watermark": batch.watermark, **_NO_HEAD}
    if not _same(source).update(**changes):
        raise Superseded(f"Batch {batch.pk} is of a table that is another one now.")


def _next_snapshot(batch: HistoryBatch) -> dict[str, Any]:
    """Within one snapshot difference numbers continue; the next one starts at 0, for rows that committed late."""
    if batch.is_last:
        return {"snapshot": batch.snapshot_to, "snapshot_target": "", "seq_done": 0}
    return {"snapshot": batch.snapshot_from, "snapshot_target": batch.snapshot_to, "candidate_at": batch.watermark}


@transaction.atomic
def filed(source: HistorySource, to: Any, before: datetime, files: Iterable[DataFile]) -> None:
    """Record archive events and the files that hold them, in one transaction. Raises Superseded."""
    unmoved = _same(source).filter(events_snapshot=source.events_snapshot, events_before=source.events_before)
    if not unmoved.update(events_snapshot=to.snapshot, events_before=before, **_log(to.written, to.at)):
        raise Superseded("Another driver has put the same events into files.")
    DataFile.objects.bulk_create(files)


def watermark() -> datetime | None:
    """Up to when history is complete: the least of all sources that were ever read to their end. A source still in its
    first read is counted and judged later."""
    known = HistorySource.objects.filter(exists=True).exclude(watermark=None)
    return known.aggregate(least=Min("watermark"))["least"]
