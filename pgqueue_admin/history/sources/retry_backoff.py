"""Backoff of tables whose batches keep failing."""

from datetime import datetime, timedelta

from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock

FIRST, MOST = timedelta(minutes=1), timedelta(minutes=10)  # from the second failure in a row, doubled with each more
State = HistoryBatch.State


def until(source: HistorySource) -> datetime | None:
    """When the table is read again; None: now. *Read now* ends the backoff."""
    last = _last(source)
    if last is None or last.state not in (State.ABANDONED, State.PLANNED) or last.ended_at is None:
        return None
    if (in_vain := _in_a_row(source, last)) < 2 or (source.requested_at and source.requested_at > last.ended_at):
        return None
    return last.ended_at + min(FIRST * 2 ** min(in_vain - 2, 10), MOST)


def _last(source: HistorySource) -> HistoryBatch | None:
    return source.batches.order_by("-pk").first()


def _in_a_row(source: HistorySource, last: HistoryBatch) -> int:
    """Batches abandoned since the last one done, plus attempts of the open one."""
    done = source.batches.filter(state=State.DONE).order_by("-pk").values_list("pk", flat=True).first()
    given_up = source.batches.filter(state=State.ABANDONED, pk__gt=done or 0).count()
    return given_up + (last.attempt if last.state == State.PLANNED else 0)


def is_resting(source: HistorySource) -> bool:
    rests_until = until(source)
    return rests_until is not None and rests_until > database_clock.now()


def said(source: HistorySource) -> str:
    """Until when the backoff lasts and why, as a sentence; empty without backoff."""
    source.refresh_from_db(fields=["requested_at"])
    last, rests_until = _last(source), until(source)
    if last is None or rests_until is None:
        return ""
    if last.state == State.PLANNED:
        since = f"{last.planned_at:%Y-%m-%d %H:%M:%S} UTC"
        what = f"Batch {last.pk} was tried {last.attempt} times since {since}: it is tried again"
    else:
        what = f"{_in_a_row(source, last)} batches in a row were given up: what is there now is read"
    return f"{what} after {rests_until:%H:%M:%S} UTC, or when somebody presses Read now."


def last_error() -> str:
    """Error of the last failed attempt of an open batch; empty if none failed."""
    left = HistoryBatch.objects.filter(state=State.PLANNED, source__exists=True).exclude(ended_at=None)
    return left.order_by("pk").values_list("error", flat=True).first() or ""
