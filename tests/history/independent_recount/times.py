"""Times of each step, in total and by name: percentiles within one per cent, heat map cells exactly."""

from typing import Any

import pytest

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.windows import EACH_SUBJECT, Subject, Window

Key = tuple[str, str, Subject]  # measure, grain, subject


def plain(database: Any, window: Window) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for row in database.all(_CUT):
        cuts = tuple(within_one_per_cent(cut) for cut in row.cuts)
        steps = found.setdefault((row.measure, row.grain, Subject(row.what, row.name)), {})
        steps[row.at] = (cuts, dict(zip(row.bands, row.numbers, strict=True)))
    assert {measure for measure, *_ in found} == set(queries.MEASURES)
    return found


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {
        (measure, grain, subject): queries.timings(subject.asked(window, grain), measure)
        for measure, grain, subject in keys
    }


def within_one_per_cent(milliseconds: Any) -> Any:
    return pytest.approx(float(milliseconds), rel=0.0101)


_CUT = f"""
with each as (
    select
        measure, grain, what, name, extract(epoch from date_trunc(grain, ended_at, 'UTC'))::int8 as at,
        milliseconds, band
    from timed, unnest(array['hour', 'day']) as grain, {EACH_SUBJECT}
    where what = '' or name <> ''
    union all
    select
        measure, 'minute', '', '', extract(epoch from date_trunc('minute', ended_at, 'UTC'))::int8,
        milliseconds, band
    from timed
), cells as (
    select measure, grain, what, name, at, band, count(*) as number from each group by 1, 2, 3, 4, 5, 6
), mapped as (
    select measure, grain, what, name, at, array_agg(band) as bands, array_agg(number) as numbers
    from cells group by 1, 2, 3, 4, 5
), cut as (
    select
        measure, grain, what, name, at,
        percentile_disc(array[0.5, 0.95, 0.99]) within group (order by milliseconds) as cuts
    from each group by 1, 2, 3, 4, 5
)
select * from cut join mapped using (measure, grain, what, name, at)
"""
