"""Numbers of succeeded, failed and clock-skewed messages, of successes after retries, and the last day."""

from datetime import UTC, datetime
from typing import Any

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.windows import EACH_SUBJECT, Subject, Window

Key = tuple[str, str, Subject]  # figure, grain, subject


def plain(database: Any, window: Window) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for row in database.all(_COUNTED):
        subject = Subject(row.what, row.name)
        succeeded = row.succeeded or None if row.what == "queue" else row.succeeded  # unknown for a queue
        found.setdefault(("counts", row.grain, subject), {})[row.at] = (succeeded, row.failed, row.skewed)
        if row.what != "queue":
            steps = found.setdefault(("retried", row.grain, subject), {})
            steps |= {row.at: row.retried} if row.retried else {}
        if row.grain == "day":
            last = datetime.fromtimestamp(row.at, UTC)
            found["last_day", "day", subject] = max(last, found.get(("last_day", "day", subject), last))
    assert len({subject.what for *_, subject in found}) == 5
    return found


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {(figure, grain, subject): _TOLD[figure](window, grain, subject) for figure, grain, subject in keys}


_TOLD: dict[str, Any] = {
    "counts": lambda window, grain, subject: queries.counts(subject.asked(window, grain)),
    "retried": lambda window, grain, subject: queries.retried(subject.asked(window, grain)),
    "last_day": lambda window, grain, subject: queries.last_day(subject.names),
}
_COUNTED = f"""
select
    grain, what, name, extract(epoch from date_trunc(grain, ended_at, 'UTC'))::int8 as at,
    count(*) filter (where is_ok) as succeeded, count(*) filter (where not is_ok) as failed,
    count(*) filter (where least(critical, processing, delivery) < 0) as skewed,
    count(distinct (message_id, endpoint)) filter (where is_ok and is_retried) as retried
from recounted, unnest(array['minute', 'hour', 'day']) as grain, {EACH_SUBJECT}
where what = '' or name <> ''
group by 1, 2, 3, 4
"""
