"""Tables whose batches are given up again and again: each time they are left alone for longer, to a limit."""

from datetime import datetime, timedelta

from pgqueue_admin.records import clock
from pgqueue_admin.records.models import HistoryBatch, HistorySource

FIRST, MOST = timedelta(minutes=1), timedelta(minutes=10)  # from the second in a row on, doubled with each more
State = HistoryBatch.State


def until(source: HistorySource) -> datetime | None:
    """When it is read again; None: it may be now. Somebody who pressed *Read now* since then is not kept waiting."""
    last = source.batches.order_by("-pk").first()
    if last is None or last.state != State.ABANDONED or last.ended_at is None:
        return None
    if (given_up := in_a_row(source)) < 2 or (source.wanted_at and source.wanted_at > last.ended_at):
        return None
    return last.ended_at + min(FIRST * 2 ** min(given_up - 2, 10), MOST)


def in_a_row(source: HistorySource) -> int:
    """How many of its batches were given up since one was done."""
    done = source.batches.filter(state=State.DONE).order_by("-pk").values_list("pk", flat=True).first()
    return source.batches.filter(state=State.ABANDONED, pk__gt=done or 0).count()


def is_resting(source: HistorySource) -> bool:
    rests_until = until(source)
    return rests_until is not None and rests_until > clock.now()
