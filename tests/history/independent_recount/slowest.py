"""The slowest types, and their previous times."""

from datetime import timedelta
from typing import Any

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.times import within_one_per_cent
from tests.history.independent_recount.windows import ALL, Subject, Window, halves

Key = tuple[str, str, Subject, Window, timedelta]


def plain(database: Any, window: Window) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    busiest = database.value("select endpoint from recounted group by 1 order by count(*) desc limit 1")
    for part in (window, halves(window)[1]):
        earlier = part[1] - part[0]
        for subject in (ALL, Subject("endpoint", busiest)):
            for measure in queries.MEASURES:
                rows = slowest(database, measure, part, earlier, subject)
                found |= {(measure, grain, subject, part, earlier): rows for grain in ("hour", "day")}
    return found


def slowest(database: Any, measure: str, window: Window, earlier: timedelta, subject: Subject) -> list[Any]:
    """In the order of figures: those in one bucket are equally slow."""
    since, until = window
    about = {"measure": measure, "since": since, "until": until, "earlier": earlier}
    rows = database.all(_SLOWEST, {**about, "endpoint": subject.name})
    return [(row.type, row.messages, *map(within_one_per_cent, row.cuts), _or_none(row.before)) for row in rows]


def _or_none(milliseconds: Any) -> Any:
    return None if milliseconds is None else within_one_per_cent(milliseconds)


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {
        (measure, grain, subject, part, earlier): queries.slowest(subject.asked(part, grain), part[1], earlier, measure)
        for measure, grain, subject, part, earlier in keys
    }


_SLOWEST = """
with each as (
    select * from timed where type <> '' and measure = %(measure)s and %(endpoint)s in ('', endpoint)
), now as (
    select type, count(*) as messages, percentile_disc(array[0.5, 0.95]) within group (order by milliseconds) as cuts
    from each where ended_at >= %(since)s and ended_at < %(until)s group by 1
), earlier as (
    select type, percentile_disc(0.95) within group (order by milliseconds) as before
    from each where ended_at >= %(since)s - %(earlier)s::interval and ended_at < %(until)s - %(earlier)s::interval
    group by 1
)
select type, messages, cuts, before from now left join earlier using (type)
order by pg_temp.bucket(cuts[2]) desc, messages desc, type limit 20
"""
