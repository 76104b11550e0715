"""Trends: each figure links to its messages, new failures are marked, and depth continues live where history ends."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models import DepthBucket, Endpoint, Queue, RetryOutcome, Sample, database_clock, depth_history
from pgqueue_admin.services.content_access import ALL
from tests.console.pages import Connect, drawn, matched
from tests.history.rollup_factory import failed, rolled_up, told

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
HOUR = {"w": "1h", "at": "2026-11-14T10:40:00Z"}
BILLING = '"public"."Billing"'


@pytest.fixture
def database(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def page(client: Client, **asked: str) -> str:
    return client.get("/trends/", {**HOUR, **asked}).content.decode()


def linked(text: str, words: str) -> str:
    """The archive search behind the link with these words."""
    found = re.search(rf'<a href="(/archive/[^"]*)">\s*(?:<[^>]*>)*{words}', text)
    assert found, words
    return parse_qs(urlsplit(unescape(found[1])).query)["q"][0]


def test_a_point_leads_to_exactly_its_messages(as_viewer: Client, database: Connection) -> None:
    for minute, queue, kind in ((5, BILLING, "Bill"), (5, BILLING, "Other"), (6, BILLING, "Bill"), (5, "q", "Bill")):
        store.archive_failed(database, DeadMessage(queue=queue, message_type=kind, died_at=TEN + minute * MINUTE))
    for minute, messages in ((5, 41), (6, 42)):
        rolled_up(TEN + minute * MINUTE, messages, result="failed", queue=BILLING, type="Bill")
    query = search.read(linked(page(as_viewer, queue=BILLING, type="Bill", table="steps"), "41"), ALL)
    assert query.error is None
    (found,) = store.page(database, query.filter, None, 10).messages
    assert (found.queue, found.message_type, found.died_at) == (BILLING, "Bill", TEN + 5 * MINUTE)


@pytest.mark.parametrize(
    "name",
    ["O'Brien", "a,b", "<b>x</b>", "two words", "tab\there", 'Say "hi" there', '"quoted"', "x" * 400, "=1+1", "a:b"],
)
def test_a_figure_of_any_name_leads_to_that_name(as_viewer: Client, database: Connection, name: str) -> None:
    rolled_up(TEN + 5 * MINUTE, 41, result="failed", type=name)
    text = page(as_viewer, type=name, table="steps")
    address = urlsplit(unescape(matched(r'<a href="([^"]*)">\s*(?:<[^>]*>)*41', text)))
    asked = parse_qs(address.query)
    found = search.read(asked["q"][0], ALL).filter.type_is if address.path == "/archive/" else asked["type"][0]
    assert found == name
    assert drawn(text)["failed"][-36] == 41


def test_clock_skew_leaves_out_only_the_skewed_span(as_viewer: Client, console_database: str) -> None:
    """The sender's clock is ahead, yet the handler's time is known: “not timed” would be wrong."""
    rolled_up(TEN + 5 * MINUTE, 3, skewed=3, processing_buckets=[200], processing_counts=[3])
    text = re.sub(r"\s+", " ", page(as_viewer, m="processing"))
    assert "Not timed" not in text
    assert re.search(r'<dt>Clock skew</dt> <dd class="v"><span[^>]*>3</span></dd>', text)
    assert drawn(text)["p50"][-36] == round(value(200))


def test_a_stretch_stays_in_every_address_of_the_page(as_viewer: Client, database: Connection) -> None:
    """A table is loaded when requested; the form, the tables and the files keep the range."""
    rolled_up(TEN + 5 * MINUTE, 41)
    stretch = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T10:10:00Z", "w": "30d"}
    text = as_viewer.get("/trends/", stretch).content.decode()
    assert 'name="since" value="2026-11-14T10:00:00Z"' in text
    assert "p50 (half) within" not in text
    address = unescape(matched(r'href="([^"#]*)#table-steps', text))
    shown = as_viewer.get(f"/trends/{address}").content.decode()
    assert "p50 (half) within" in shown
    assert drawn(shown)["succeeded"] == [0, 0, 0, 0, 0, 41, 0, 0, 0, 0]
    file = unescape(matched(r'href="([^"]*)">as CSV', shown))
    (row,) = as_viewer.get(f"/trends/{file}").content.decode().splitlines()[1:]
    assert row.startswith("2026-11-14T10:05:00Z,41,0,")
    length = unescape(matched(r'href="([^"]*)" data-key', shown))
    assert "since" not in length
    assert "w=1h" in length


def test_of_a_queue_it_is_not_known_what_succeeded(as_viewer: Client, database: Connection) -> None:
    """An audited message names only its endpoint: none counted does not mean none."""
    rolled_up(TEN + 5 * MINUTE, 41, endpoint="Billing")
    rolled_up(TEN + 5 * MINUTE, 3, result="failed", queue=BILLING, endpoint="Billing")
    of_queue, of_endpoint = page(as_viewer, queue=BILLING), page(as_viewer, endpoint="Billing")
    assert drawn(of_queue)["succeeded"] == [None] * len(drawn(of_queue)["at"])
    assert set(drawn(of_queue)["share"]) == {None}
    assert "not known of a queue: choose its endpoint" in of_queue
    assert "100" not in matched(r"Share failed</dt><dd class=\"v\">([^<]*)", of_queue)
    assert sum(drawn(of_endpoint)["succeeded"]) == 41
    assert "from audit queues and the archive" in of_endpoint
    assert "not known" not in of_endpoint


def test_a_legend_shows_how_each_of_its_values_is_drawn(as_viewer: Client, database: Connection) -> None:
    rolled_up(TEN + 5 * MINUTE, 41)
    legends = re.findall(r'<figcaption class="legend"(.*?)</figcaption>', page(as_viewer), re.DOTALL)
    entries = [each for legend in legends for each in legend.split("<span")[1:] if "<b data-read" in each]
    assert len(entries) >= 10
    assert [each for each in entries if 'class="key"' not in each] == []


def test_new_failure_is_marked_and_links_to_its_messages(as_viewer: Client, console_database: str) -> None:
    rolled_up(TEN - DAY, grain="day")
    rolled_up(TEN, result="failed")
    failed(TEN, "a", 7)
    text = page(as_viewer)
    assert "1 is new" in text
    assert "Card &lt;n&gt; refused" in text
    assert "fingerprint=a" in matched(r'<a href="(/trends/messages/[^"]*)">\s*(?:<[^>]*>)*Shop', text)
    assert linked(text, "all of this error").startswith("error:=Shop.Refused result:unsuccessful kind:message since:")


def test_pruned_failures_are_not_shown_as_none(as_viewer: Client, console_database: str) -> None:
    """Days are kept for ever, errors and retry outcomes as long as hours: only the numbers are left."""
    day = database_clock.now().replace(hour=0, minute=0, second=0, microsecond=0) - 900 * DAY
    rolled_up(day, 5, grain="day")
    rolled_up(day + DAY, 7, grain="day", result="failed")
    window = {"since": f"{day:%Y-%m-%d}", "until": f"{day + 3 * DAY:%Y-%m-%d}"}
    text = page(as_viewer, **window, at="")
    assert drawn(text)["failed"] == [0, 7, 0]
    assert drawn(text)["retried"] == [None] * 3, "0 would be wrong"
    assert "after retries</dd>" not in text
    assert "Nothing failed in this window" not in text
    assert "only the numbers above are left" in text
    assert page(as_viewer, **window, at="", format="steps").splitlines()[1].endswith(",,whole")
    assert "only the numbers above are left" not in page(as_viewer)


def test_nothing_is_new_where_what_was_before_is_forgotten(as_viewer: Client, console_database: str) -> None:
    """A window of two years may begin before the retention of failures: all of them would look new."""
    now = database_clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    rolled_up(now - 900 * DAY, grain="day")
    rolled_up(now - DAY, grain="day", result="failed")
    failed(now - DAY, "a")
    told("m", now - DAY, failed=1, last_failed_at=now - DAY)
    text = re.sub(r"\s+", " ", page(as_viewer, since=f"{now - 740 * DAY:%Y-%m-%d}", at=""))
    assert "Card &lt;n&gt; refused" in text
    assert "are new" not in text
    assert "is new" not in text
    assert "1 message failed in this window" in text


def test_each_message_has_one_story(as_viewer: Client, console_database: str) -> None:
    rolled_up(TEN, result="failed")
    told("m-1", TEN, failed=3, last_failed_at=TEN)
    told("m-1", TEN, succeeded=1, last_succeeded_at=TEN + DAY)
    text = re.sub(r"\s+", " ", page(as_viewer))
    assert "1 message failed in this window, 1 of them succeeded since" in text
    assert "3 times" in text
    assert 'succeeded after a retry <time datetime="2026-11-15T10:00:00Z"' in text
    assert "m-1/" in text
    RetryOutcome.objects.filter(succeeded=1).delete()
    assert "not succeeded" in page(as_viewer)


def test_of_very_many_stories_the_newest_are_looked_at(
    as_viewer: Client, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so: years of failures have millions."""
    monkeypatch.setattr(queries, "OUTCOMES", 2)
    rolled_up(TEN, result="failed")
    for minute in range(3):
        told(f"m-{minute}", TEN + minute * MINUTE, failed=1, last_failed_at=TEN + minute * MINUTE)
    told("m-2", TEN + DAY, succeeded=1, last_succeeded_at=TEN + DAY)
    text = re.sub(r"\s+", " ", page(as_viewer))
    assert "More than 2 messages failed in this window. Of the last 2, 1 succeeded since" in text
    assert "m-2/" in text
    assert "m-0/" not in text


def test_depth_goes_on_live_where_history_ends(as_viewer: Client, console_database: str) -> None:
    """Even where nothing ever finished: samples alone are enough."""
    queue = Queue.objects.create(schema="public", table="Sales", kind="input")
    Endpoint.objects.create(name="Shop.Sales", table="Sales")
    ended = database_clock.now().replace(second=0, microsecond=0) - 3 * MINUTE
    live = ended + MINUTE
    Sample.objects.bulk_create(Sample(queue=queue, at=at, depth=depth) for at, depth in ((ended, 4), (live, 9)))
    depth_history.fold(live + MINUTE / 2)
    for narrowed in ({}, {"queue": "Sales"}, {"endpoint": "Shop.Sales"}):
        text = page(as_viewer, at="", **narrowed)
        data = drawn(text)
        assert [each for each in data["median"] if each is not None] == [4, 9]
        assert data["live_from"] == int(live.timestamp())
        assert data["high"][data["at"].index(data["live_from"])] == 9
        assert "right of the dotted line: live samples" in text
    rows = page(as_viewer, at="", format="depth").splitlines()
    assert rows[0].startswith("at,least,median,most,live,median_week_before,")
    assert [row.partition(",")[2] for row in rows[1:]] == [
        "4,4,4,False,,,,,,,,0,counted,whole",
        "9,9,9,True,,,,,,,,0,counted,whole",
    ]


def test_successes_after_retries_are_counted_by_message(as_viewer: Client, database: Connection) -> None:
    """In the step of the success; a message that was never retried has no story."""
    rolled_up(TEN + 5 * MINUTE, 41, endpoint="Billing")
    for at in (5, 5, 6):
        told(f"m{at}", TEN, endpoint="Billing", succeeded=1, last_succeeded_at=TEN + at * MINUTE)
    told("dead", TEN, endpoint="Billing", failed=1, last_failed_at=TEN + 5 * MINUTE)
    text = page(as_viewer)
    data = drawn(text)
    assert {at: number for at, number in zip(data["at"], data["retried"], strict=True) if number} == {
        int((TEN + at * MINUTE).timestamp()): 1 for at in (5, 6)
    }
    assert "2</span> after retries" in text
    assert set(drawn(page(as_viewer, queue=BILLING))["retried"]) == {None}
    (row,) = page(as_viewer, format="steps").splitlines()[1:]
    assert row.endswith(",1,whole")


@pytest.mark.parametrize("length", ["1h", "7d"])
def test_every_line_has_the_same_steps_a_week_before(as_viewer: Client, console_database: str, length: str) -> None:
    """Queried separately for an hour, and together with the window for a week."""
    grain = "minute" if length == "1h" else "hour"
    for weeks, messages in ((0, 8), (1, 4), (2, 100)):
        rolled_up(TEN - 7 * weeks * DAY, messages, {100 + weeks: 3}, grain=grain)
        rolled_up(TEN - 7 * weeks * DAY, 1 + weeks, grain=grain, result="failed")
        DepthBucket.objects.create(grain=grain, at=TEN - 7 * weeks * DAY, queue=0, low=1, median=5 + weeks, high=9)
    data = drawn(page(as_viewer, w=length, m="delivery"))
    step = data["at"].index(int(TEN.timestamp()))
    assert (data["succeeded"][step], data["failed"][step], data["before"][step]) == (8, 1, 6)
    assert (data["share"][step], data["share_before"][step]) == (11.11, 33.33)
    assert data["p95_before"][step] == round(value(101)), "as it is said: a whole millisecond"
    assert (data["median"][step], data["median_before"][step]) == (5, 6)
    assert sum(data["succeeded"]) == 8
    assert len(drawn(page(as_viewer, w=length))["at"]) == len(data["median_before"])
    (row,) = page(as_viewer, w=length, m="delivery", format="steps").splitlines()[1:]
    assert row.endswith(f",4,2,{round(value(101), 1)},0,whole")
    assert page(as_viewer, w=length, format="depth").splitlines()[1].endswith("1,5,9,False,6,,,,,,,,,whole")


@pytest.mark.parametrize(
    ("typed", "utc"),
    [
        ("2026-11-21T09:30+16:00", "2026-11-20T17:30:00+00:00"),
        ("2026-11-21T09:30-23:59", "2026-11-22T09:29:00+00:00"),
        ("2026-11-21T09:30+01:00:00.5", "2026-11-21T08:29:59.500000+00:00"),
    ],
)
def test_offsets_that_the_database_does_not_read_are_read(typed: str, utc: str) -> None:
    assert search.read(f"since:{typed}", ALL).filter.since == utc


@pytest.mark.parametrize(
    "wrong",
    ["since:yesteryear", "since:0001-01-01T00:00+01:00", "until:9999-12-31T23:59-01:00", "until:2026-99-99", "since:"],
)
def test_a_time_that_is_none_searches_nothing(wrong: str) -> None:
    assert search.read(wrong, ALL).error is not None


def test_a_time_without_a_zone_is_utc() -> None:
    found = search.read("since:2026-11-14 until:2026-11-14T10:30", ALL).filter
    assert (found.since, found.until) == ("2026-11-14T00:00:00+00:00", "2026-11-14T10:30:00+00:00")


def test_an_old_window_is_shown_in_what_is_still_there_of_it(as_viewer: Client, database: Connection) -> None:
    rolled_up(TEN, grain="hour", messages=3)
    text = page(as_viewer)
    assert "by the hour: figures by the minute are no longer kept for so long ago" in " ".join(text.split())
    assert "3" in text
    rolled_up(TEN - MINUTE)
    assert "no longer kept" not in page(as_viewer)
