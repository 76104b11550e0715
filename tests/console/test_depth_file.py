"""The file of depth beside its chart, live and folded: its figures equal plain SQL over samples."""

import csv
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.models import DepthBucket, Queue, Sample, database_clock, depth_history, samples
from tests.console.pages import Connect

BEGIN = datetime(2026, 11, 14, 8, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
WINDOWS = {
    "minute": (BEGIN, BEGIN + 6 * HOUR),
    "hour": (BEGIN - DAY, BEGIN + DAY),
    "day": (BEGIN - 39 * DAY, BEGIN + DAY),
}
FIGURES = {  # tolerances: the file rounds
    "least": 0, "median": 0, "most": 0, "in_per_second": 1e-6, "out_per_second": 1e-6, "came_in": 0.501,
    "went_out": 0.501, "oldest_seconds": 0.051,
}  # fmt: skip
Steps = dict[str, list[Any]]


@pytest.fixture
def queues(console_database: str) -> list[Queue]:
    """Two queues sampled each ten seconds for three hours, and an hour a week before: with gaps and unknown rates."""
    chance = random.Random(3)
    made = [Queue.objects.create(schema="public", table=name, kind="input") for name in ("Sales", "Mail")]
    looks = [BEGIN + number * 10 * SECOND for number in range(1_080) if number % 300 > 20]
    looks += [BEGIN - 7 * DAY + number * 10 * SECOND for number in range(360)]
    for queue in made:
        Sample.objects.bulk_create(_look(queue, at, chance) for at in looks)
    return made


def _look(queue: Queue, at: datetime, chance: random.Random) -> Sample:
    depth, is_rated = int(chance.expovariate(0.01)), at.minute % 20 > 2
    rates = {
        name: round(chance.uniform(0, 50), 2) if is_rated else None for name in ("in_per_second", "out_per_second")
    }
    waited = {"oldest_at": at - chance.randrange(900) * SECOND, "oldest_how": "exact"} if depth else {}
    return Sample(queue=queue, at=at, depth=depth, ready=depth, how="counted", **rates, **waited)


@pytest.mark.parametrize("grain", WINDOWS)
def test_depth_file_has_the_figures_of_plain_sql(
    as_viewer: Client, console_database: str, queues: list[Queue], connect: Connect, grain: str
) -> None:
    database = connect(console_database)
    wanted = {name: _plain(database, grain, ids) for name, ids in _asked(queues)}
    assert all(len(each) > 1 for each in wanted.values())
    assert {name: _file(as_viewer, grain, name) for name in wanted} == wanted, "live"
    depth_history.fold(database_clock.now())
    samples.thin(database_clock.now())
    assert DepthBucket.objects.filter(grain=grain).exists()
    assert Sample.objects.count() < 100
    assert {name: _file(as_viewer, grain, name) for name in wanted} == wanted, "folded, and of samples that are gone"


def _asked(queues: list[Queue]) -> list[tuple[str, list[int]]]:
    """Each queue parameter, empty for all together, with the ids that it covers."""
    return [("", [each.pk for each in queues]), *((str(each), [each.pk]) for each in queues)]


def _file(client: Client, grain: str, queue: str) -> Steps:
    since, until = WINDOWS[grain]
    asked = {"since": since.isoformat(), "until": until.isoformat(), "format": "depth", "queue": queue}
    rows = csv.DictReader(client.get("/trends/", asked).content.decode().splitlines())
    names = (*FIGURES, "median_week_before")
    return {row["at"]: [float(row[name]) if row[name] else None for name in names] for row in rows}


def _plain(database: Any, grain: str, ids: list[int]) -> Steps:
    rows = {row.at: row[1:] for row in database.all(_PLAIN[grain != "minute"], {"grain": grain, "queues": ids})}
    since, until = WINDOWS[grain]
    return {
        f"{at:%Y-%m-%dT%H:%M:%SZ}": [
            *(
                None if each is None else pytest.approx(float(each), abs=off)
                for each, off in zip(figures, FIGURES.values(), strict=True)
            ),
            rows[at - 7 * DAY][1] if at - 7 * DAY in rows else None,
        ]
        for at, figures in rows.items()
        if since <= at < until
    }


_MINUTES = """
with look as (
    select
        at, sum(depth) as depth, max(extract(epoch from at - oldest_at)) as waited,
        case when count(in_per_second) = count(*) then sum(in_per_second) end as entered,
        case when count(out_per_second) = count(*) then sum(out_per_second) end as went
    from pgqueue_console.pgqueue_sample where queue_id = any(%(queues)s) group by 1
), step as (
    select
        date_trunc('minute', at, 'UTC') as at, min(depth) as low,
        percentile_disc(0.5) within group (order by depth) as middle, max(depth) as high, avg(entered) as entered,
        avg(went) as went, max(waited) as waited
    from look group by 1
)
"""
_PLAIN = [
    _MINUTES
    + """
    select at, low, middle, high, entered, went, entered * 60 as came_in, went * 60 as went_out, waited
    from step
    """,
    _MINUTES
    + """
    select
        date_trunc(%(grain)s, at, 'UTC') as at, min(low) as low,
        percentile_disc(0.5) within group (order by middle) as middle, max(high) as high, avg(entered) as entered,
        avg(went) as went, sum(entered) * 60 as came_in, sum(went) * 60 as went_out, max(waited) as waited
    from step group by 1
    """,
]
