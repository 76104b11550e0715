"""The outcome of each message that failed in a window: the last twenty, and how many of all succeeded."""

from typing import Any

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.windows import EACH_SUBJECT, Subject, Window, halves, hours

Key = tuple[Subject, Window]


def plain(database: Any, window: Window) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for part in (window, *halves(window), *hours(window)):
        for what, name, *story in database.all(_STORIES, {"since": part[0], "until": part[1]}):
            found.setdefault((Subject(what, name), part), []).append((*story, False))
    assert any(story[9] for stories in found.values() for story in stories), "some succeeded since"
    return found


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {(subject, part): queries.retry_outcomes(subject.asked(part, "day")) for subject, part in keys}


_STORIES = f"""
with known as (
    select * from recounted where message_id <> '' and (not is_ok or is_retried)
), story as (
    select
        message_id, endpoint, (array_agg(type order by ended_at desc) filter (where not is_ok))[1] as type,
        (array_agg(exception order by ended_at desc) filter (where not is_ok))[1] as exception,
        count(*) filter (where not is_ok) as failed, min(ended_at) as first,
        max(ended_at) filter (where not is_ok) as last_failed, max(ended_at) filter (where is_ok) as succeeded
    from known group by 1, 2
), here as (
    select what, name, message_id, endpoint, max(ended_at) as last_here
    from known, {EACH_SUBJECT}
    where not is_ok and ended_at >= %(since)s and ended_at < %(until)s and (what = '' or name <> '')
    group by 1, 2, 3, 4
), placed as (
    select
        *, row_number() over (partition by what, name order by last_here desc, message_id, endpoint) as place,
        count(*) over (partition by what, name) as of_all,
        count(*) filter (where succeeded > last_failed) over (partition by what, name) as of_succeeded
    from here join story using (message_id, endpoint)
)
select
    what, name, message_id, endpoint, type, exception, failed, first, last_failed,
    case when succeeded > last_failed then succeeded end as succeeded, of_all, of_succeeded
from placed where place <= 20
order by what, name, last_failed desc, message_id, endpoint
"""
