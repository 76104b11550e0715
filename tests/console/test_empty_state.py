"""Empty Trends: which reason applies, what stays selected, and unknown depth."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.models import DepthBucket, Endpoint, HistorySource, Queue
from tests.console.pages import Page, matched
from tests.history.rollup_factory import batch, rolled_up

TODAY = datetime(2026, 11, 14, tzinfo=UTC)
TEN = TODAY + timedelta(hours=10)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
NAMES_QUEUE = "Only what died names its queue; what succeeded names its endpoint: choose that one."
HOUR = {"w": "1h", "at": "2026-11-14T10:40:00Z"}


@pytest.fixture
def page(as_viewer: Client) -> Page:
    return lambda **asked: as_viewer.get("/trends/", {**HOUR, **asked}).content.decode()


@pytest.fixture
def is_on(settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}


def said(text: str) -> str:
    """The heading and text of the empty state."""
    return " ".join(
        unescape(re.sub(r"<[^>]*>", " ", matched(r'<div class="empty">(.*?)</div>', text, re.DOTALL))).split()
    )


def test_history_that_is_switched_off_says_how_to_switch_it_on(page: Page) -> None:
    assert said(page()).startswith("History is switched off SPARK_MASTER is empty")


def test_history_that_never_began_leads_to_what_keeps_it_back(page: Page, is_on: None) -> None:
    text = page()
    assert said(text).startswith("No history yet")
    assert '<a class="b" href="/history/">What keeps it back</a>' in text


def test_a_window_behind_the_end_of_history_is_not_read_yet(page: Page) -> None:
    """Whether history is on or off: nobody knows that nothing finished in that time."""
    rolled_up(TEN - DAY)
    rolled_up(TEN + 5 * MINUTE, 3)
    HistorySource.objects.update(watermark=TEN - 30 * MINUTE)
    text = page(table="steps")
    assert said(text).startswith("Not read yet This window begins where history ends")
    assert ">3</span></a>" not in text
    HistorySource.objects.update(watermark=TEN + 30 * MINUTE)
    assert ">3</span></a>" in page(table="steps")


def test_a_name_that_history_never_had_is_called_unknown(page: Page) -> None:
    rolled_up(TODAY, endpoint="Sales", grain="day")
    text = page(endpoint="Slaes")
    assert said(text).startswith("History knows no endpoint “Slaes”")
    assert "Show everything" in text
    assert said(page(endpoint="Sales", type="<b>")).startswith("History knows no type “<b>”")
    assert NAMES_QUEUE not in said(text)


def test_a_queue_in_which_nothing_died_leads_to_its_endpoint(page: Page) -> None:
    """Thousands may have succeeded: "nothing of it was read" would be wrong."""
    rolled_up(TODAY, endpoint="Sales", grain="day")
    found = said(page(queue='"public"."Sales"'))
    assert NAMES_QUEUE in found
    assert "Nothing of that name has been read" not in found


def test_a_name_that_is_known_says_when_it_was_last_seen(page: Page, as_viewer: Client) -> None:
    rolled_up(datetime(2026, 10, 5, tzinfo=UTC), endpoint="Sales", grain="day", messages=7)
    text = page(endpoint="Sales")
    assert "Nothing finished in this window" in said(text)
    assert "The last day with any is 2026-10-05 (UTC)." in said(text)
    address = unescape(matched(r'href="([^"]*)">Show the week up to then', text))
    shown = as_viewer.get(address).content.decode()
    assert '<option value="Sales" selected>' in shown
    assert '<div class="empty">' not in shown


def test_the_last_day_is_that_of_its_own_calendar_wherever_the_reader_is(page: Page, as_viewer: Client) -> None:
    rolled_up(datetime(2026, 10, 5, tzinfo=UTC), endpoint="Sales", grain="day", messages=7)
    as_viewer.cookies["zone"] = "America/New_York"
    assert "The last day with any is 2026-10-05 (UTC)." in said(page(endpoint="Sales"))


def test_names_that_are_known_but_never_together_are_told(page: Page) -> None:
    rolled_up(TODAY, endpoint="Sales", grain="day")
    rolled_up(TODAY, type="Bill", grain="day")
    assert said(page(endpoint="Sales", type="Bill")).startswith("Nothing has finished")


def test_chosen_filters_stay_chosen_without_any_figures(page: Page) -> None:
    batch()
    chosen = {"queue": '"public"."Gone"', "endpoint": "Shop <1>", "type": "Shop.Old"}
    text = page(**chosen)
    for value in chosen.values():
        assert value in [unescape(each) for each in re.findall(r'<option value="([^"]*)" selected>', text)]
    rolled_up(TEN, endpoint="Sales")
    assert page(endpoint="Sales").count('value="Sales"') == 1


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"queue": '"public"."Nobody"'}, "Nobody in schema public was never found as a queue."),
        ({"queue": "a.b.c.d"}, "No samples"),
        ({"endpoint": "Foreign"}, "nobody has said here which queue this endpoint receives from"),
        ({"endpoint": "Declared"}, "Elsewhere in schema public was never found as a queue."),
        ({"queue": '"public"."Old"'}, "the queue is gone since 1 Nov 2026 09:00 UTC."),
        ({"queue": '"public"."Sales"'}, "No samples in this window."),
    ],
)
def test_depth_that_nobody_knows_is_not_that_of_all(
    page: Page, database: None, chosen: dict[str, str], why: str
) -> None:
    """A chart of all input queues under the name of one would be wrong."""
    text = page(**chosen, table="depth")
    data = json.loads(unescape(matched(r'data-trends="([^"]*)"', text)))
    assert set(data["median"]) == {None}
    assert why in unescape(text)
    assert "all input queues together" not in text
    assert page(**chosen, format="depth").count("\n") == 1


def test_depth_of_a_queue_that_is_gone_is_there_while_it_was(page: Page, database: None) -> None:
    text = page(queue='"public"."Old"', w="24h", at="2026-10-31T10:00:00Z")
    assert "At most 9 waited" in text


@pytest.fixture
def database(console_database: str) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    old = Queue.objects.create(
        schema="public", table="Old", kind="input", gone_since=datetime(2026, 11, 1, 9, tzinfo=UTC)
    )
    Endpoint.objects.create(name="Declared", table="Elsewhere", ours=False)
    DepthBucket.objects.create(grain="minute", at=TEN, queue=0, low=1, median=2, high=3)
    DepthBucket.objects.create(
        grain="hour", at=datetime(2026, 10, 31, 9, tzinfo=UTC), queue=old.pk, low=1, median=2, high=9
    )


def test_a_window_that_is_read_in_part_says_up_to_where_nothing_finished(page: Page, console_database: str) -> None:
    rolled_up(TODAY - DAY, grain="day")
    HistorySource.objects.update(watermark=TEN)
    assert "From 14 Nov 2026 10:00 UTC on not every table is read yet" in said(page())
    HistorySource.objects.update(watermark=None)
    assert "A table is being read for the first time" in said(page())
    HistorySource.objects.update(watermark=TEN, exists=False)
    assert "From 14 Nov 2026 10:00 UTC on not every table is read yet" in said(page())


def test_messages_of_history_say_why_there_are_none(as_viewer: Client, console_database: str) -> None:
    def listed() -> str:
        return said(as_viewer.get("/trends/messages/", {"w": "1h"}).content.decode())

    assert listed().startswith("History is switched off")
    batch()
    assert listed().startswith("No file of history has these days")
