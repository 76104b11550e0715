"""Trends: the band of usual values, and each anomaly with its numbers, its window and its messages."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Q
from django.test import Client

from pgqueue_admin.formatting.durations import nearest
from pgqueue_admin.history.anomalies import findings
from pgqueue_admin.history.rollups.histogram import bucket, value
from pgqueue_admin.models import Anomaly, BaselineBucket, Endpoint
from tests.console.pages import drawn
from tests.console.test_trends import linked
from tests.history.rollup_factory import rolled_up

pytestmark = pytest.mark.usefixtures("console_database")
NOON = datetime(2026, 11, 14, 12, tzinfo=UTC)
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
DAY = {"w": "24h", "at": "2026-11-14T12:30:00Z"}
SPAN, LATE = bucket(100), bucket(900)


def seen(at: datetime, messages: int, grain: str = "hour", failed: int = 0, **names: str) -> None:
    subject = {"queue": "", "endpoint": "", "type": "", **names}
    spans = {"critical": [SPAN, SPAN, SPAN, LATE]}
    BaselineBucket.objects.create(grain=grain, at=at, messages=messages, failed=failed, **subject, **spans)


def unusual(kind: str, hours: int = 2, **changes: Any) -> None:
    """An anomaly of each of the ``hours`` up to noon."""
    about = {
        "queue": "",
        "endpoint": "Sales",
        "type": "Shop.Order",
        "observed": 31,
        "messages": 90,
        "median": 1,
        "low": 0,
    }
    numbers = {**about, "high": 10, "weeks": 8, **changes}
    for back in range(hours):
        Anomaly.objects.create(kind=kind, at=NOON - back * HOUR, **numbers)


def page(client: Client, **asked: str) -> str:
    return re.sub(r"\s+", " ", client.get("/trends/", {**DAY, **asked}).content.decode())


def rows(text: str) -> list[str]:
    """The lines of the list, without tags."""
    (table,) = re.findall(r'aria-label="Unusual hours, scrolls">.*?</table>', text) or [""]
    lines = re.findall(r"<tr>(.*?)</tr>", table)[1:]
    return [re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", line)).replace("\xa0", " ").strip() for line in lines]


def test_anomaly_is_listed_in_every_window_it_overlaps() -> None:
    unusual("failures")
    (found,) = findings.stretches(NOON, NOON + HOUR, Q())
    assert (found.since, found.until) == (NOON - HOUR, NOON + HOUR)
    assert findings.stretches(NOON + HOUR, NOON + 2 * HOUR, Q()) == [], "it was over"


def test_the_zone_by_whose_clocks_hours_are_compared_is_named(as_viewer: Client, settings: Any) -> None:
    seen(NOON, 5)
    assert "against the same hour of the week (UTC) in the weeks before" in page(as_viewer)
    settings.PGQUEUE = {**settings.PGQUEUE, "BASELINE_TIME_ZONE": "Europe/Berlin"}
    assert "against the same hour of the week (Europe/Berlin) in the weeks before" in page(as_viewer)


def test_before_three_weeks_the_page_says_when_usual_is_known(as_viewer: Client) -> None:
    text = page(as_viewer)
    assert "Needs 3 weeks of history" in text
    assert "No hour of history is complete yet" in text
    seen(NOON - HOUR, 5)
    text = page(as_viewer)
    assert "No hour was slower" not in text
    assert "No hour of this window was judged" in text


@pytest.mark.parametrize(
    ("asked", "judged"),
    [
        ({}, "No hour was slower, failed more, went silent or backed up"),
        ({"w": "30d"}, "hours from <time"),
        ({"since": "2026-03-01", "until": "2026-03-08"}, "No hour of this window was judged"),
        ({"since": "2026-11-14T13:00:00Z", "until": "2026-11-14T13:30:00Z"}, "No hour of this window was judged"),
    ],
)
def test_page_says_nothing_unusual_only_of_judged_hours(as_viewer: Client, asked: dict[str, str], judged: str) -> None:
    """Not judged: hours older than the retention, the current hour, and any hour of the first three weeks."""
    for at in (NOON - 4 * WEEK, NOON):
        seen(at, 5)
    text = page(as_viewer, **asked)
    assert judged in text
    assert ("No hour was slower" in text) != ("No hour of this window was judged" in text)
    assert ("hours from" in text) == ("w" in asked)


def test_the_band_lies_behind_the_hours_that_are_known(as_viewer: Client) -> None:
    rolled_up(NOON, 90, grain="hour", critical_buckets=[SPAN], critical_counts=[90])
    for week, messages in ((1, 101), (2, 105), (3, 109), (4, 113)):
        seen(NOON - week * WEEK, messages, failed=10)
    text = page(as_viewer, table="steps")
    data = drawn(text)
    place = data["at"].index(int(NOON.timestamp()))
    assert (data["usual_low"][place], data["usual_high"][place]) == (53, 157), "of 52.5 to 157.5"
    assert (data["p95_low"][place], data["p95_high"][place]) == (round(value(SPAN) / 2), round(value(SPAN) * 1.5))
    assert (data["p99_low"][place], data["p99_high"][place]) == (round(value(LATE) / 2), nearest(value(LATE) * 1.5))
    assert (data["share_low"][place], data["share_high"][place]) == (0, 22.7)
    assert data["share_high"][place - 1] is None, "nothing finished: of none there is no share"
    assert data["usual_high"][place - 1] == 4, "in three weeks nothing finished then"
    assert "Shaded: the usual range, from the same hour of the week in the 3 to 4 weeks before." in text
    (row,) = [each for each in re.findall("<tr>.*?</tr>", text, re.S) if "53 to 157" in each]
    cells = [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in re.findall("<td.*?</td>", row, re.S)]
    assert cells[-4] == "53 to 157"
    assert cells[-3] == cells[-2] != "–", "half and 19 in 20 of one span"
    assert re.fullmatch("≈ 45. ms to ≈ 1.3. s", cells[-1].replace("\xa0", " ")), "99 in 100"
    assert as_viewer.get("/trends/", {**DAY, "format": "steps"}).content.decode().splitlines()[1].split(",")[6:8] == [
        "53",
        "157",
    ]


def test_days_are_compared_with_days_and_minutes_with_their_hour(as_viewer: Client) -> None:
    midnight = NOON.replace(hour=0)
    rolled_up(NOON, 90, grain="day")
    for week in range(1, 4):
        seen(midnight - week * WEEK, 1_000, grain="day")
        seen(NOON - week * WEEK, 100)
    days = drawn(page(as_viewer, w="90d"))
    assert days["usual_high"][days["at"].index(int(midnight.timestamp()))] == 1_500
    rolled_up(NOON + timedelta(minutes=20), 2)
    minutes = drawn(page(as_viewer, w="1h"))
    assert set(minutes["usual_high"]) == {None}
    assert minutes["p50_high"][minutes["at"].index(int(NOON.timestamp()))] == round(value(SPAN) * 1.5)


@pytest.mark.parametrize(("day", "has_band"), [(0, False), (21, False), (84, True)])
def test_queue_has_a_band_only_where_no_row_names_an_endpoint(as_viewer: Client, day: int, has_band: bool) -> None:
    """Its line counts all deaths in it; what is kept of a queue covers only rows without an endpoint."""
    queue: dict[str, Any] = {"queue": '"public"."Sales"', "type": "Shop.Order"}
    rolled_up(NOON, 90, grain="hour", result="failed", **queue)
    for week in (1, 2, 3):
        seen(NOON - week * WEEK, 100, failed=100, **queue)
    for at, grain in ((NOON.replace(hour=0), "day"), (NOON, "hour")):
        rolled_up(at - timedelta(days=day), 300, grain=grain, result="failed", endpoint="Sales", **queue)
    text = page(as_viewer, **queue)
    data = drawn(text)
    assert (data["usual_high"][data["at"].index(int(NOON.timestamp()))] is not None) == has_band
    assert ("The usual range is kept by endpoint" in text) != has_band


def test_each_finding_has_its_numbers_its_window_and_its_messages(as_viewer: Client) -> None:
    Endpoint.objects.create(name="Sales", table="SalesQueue")
    unusual("failures")
    unusual("growth", queue='"public"."SalesQueue"', type="", observed=500, messages=None, median=3, high=23)
    text = page(as_viewer)
    growth, failures = sorted(rows(text), reverse=True, key=lambda row: row.startswith("Growth"))
    assert "31 of 90 failed 1, at most 10 8 weeks counted" in failures
    assert "Sales, Shop. Order" in failures
    assert "500 waited, for half of the hour at least 3, at most 23 8 weeks sampled" in growth
    assert "/trends/?endpoint=Sales&amp;type=Shop.Order&amp;since=2026-11-13T23:00:00Z" in text.replace("%3A", ":")
    assert 'href="/queues/public/SalesQueue/messages/"' in text
    asked = linked(text.partition('id="h-u"')[2], "Messages")
    window = "since:2026-11-14T11:00:00Z until:2026-11-14T13:00:00Z"
    assert asked == f"result:unsuccessful kind:message {window} endpoint:=Sales type:=Shop.Order"


@pytest.mark.parametrize(
    ("timed", "said"),
    [(90, ", of 90 timed"), (70, ", of 70 timed (20 more have no time)"), (None, "")],
)
def test_how_long_it_took_is_told_of_those_of_which_it_is_known(
    as_viewer: Client, timed: int | None, said: str
) -> None:
    """Hours judged before timed messages were counted do not mention it."""
    unusual("slower", timed=timed)
    (row,) = rows(page(as_viewer))
    assert f"19 in 20 within ≈ 31 ms{said} ≈ 1 ms, at most" in row.replace("\N{NO-BREAK SPACE}", " ")


def test_lasting_anomaly_says_so_and_hours_apart_are_two(as_viewer: Client) -> None:
    seen(NOON, 5)
    unusual("silence", observed=0, messages=0, median=150, low=60)
    Anomaly.objects.filter(at=NOON - HOUR).update(at=NOON - 3 * HOUR)
    newest, older = rows(page(as_viewer))
    assert "still nothing finished 150, at least 60" in newest
    assert "still" not in older


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, 1),
        ({"endpoint": "Sales"}, 1),
        ({"endpoint": "Billing"}, 0),
        ({"queue": '"public"."SalesQueue"'}, 1),
        ({"queue": "Billing"}, 0),
        ({"type": "Shop.Order"}, 1),
        ({"type": "Shop.Bill"}, 0),
        ({"at": "2026-11-13T10:00:00Z"}, 0),
        ({"at": "2026-11-14T10:59:00Z"}, 0),
        ({"at": "2026-11-14T11:30:00Z"}, 1),
    ],
)
def test_the_list_is_narrowed_as_the_page_is(as_viewer: Client, asked: dict[str, str], found: int) -> None:
    Endpoint.objects.create(name="Sales", table="SalesQueue")
    unusual("slower")
    assert len(rows(page(as_viewer, **asked))) == found


def test_no_more_than_twenty_stand_there(as_viewer: Client) -> None:
    for number in range(23):
        unusual("slower", hours=1, type=f"Shop.Type{number}")
    text = page(as_viewer)
    assert len(rows(text)) == 20
    assert "The last 20 of 23" in text
