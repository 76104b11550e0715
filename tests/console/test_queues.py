"""Queues: what is backing up, and is it draining? (C2)"""

import re

import pytest
from django.utils import timezone

from pgqueue_admin.console.queues import filter as filters
from pgqueue_admin.models import LatestSample, Queue
from tests.console.pages import Page
from tests.console.sampled import as_when_recorded, sample, signed_in


@pytest.fixture
def page(recorded_console: str) -> Page:
    sample(2)
    as_when_recorded()
    client = signed_in()
    return lambda query="": client.get(f"/queues/{query}").content.decode()


def names(said: str) -> list[str]:
    return re.findall(r'class="name full"><a href="[^"]*">([^<]+)</a>', said)


def test_every_queue_of_the_recorded_shop_is_listed(page: Page) -> None:
    said = names(page("?sort=name"))
    assert len(said) == Queue.objects.count() >= 28
    assert said == sorted(said, key=str.lower)


def test_worst_first_and_unknown_tables_last_with_the_reason(page: Page) -> None:
    said = page()
    assert names(said)[0] == "error"
    assert names(said)[-1] == "NotAQueue"
    assert "has id, headers, body, but" in said


def test_a_press_on_a_head_sorts_and_says_so(page: Page) -> None:
    said = page("?sort=-ready")
    assert 'aria-sort="descending"' in said
    assert "by Ready, largest first" in said
    assert names(said)[0] == "Sales"
    assert names(page("?sort=ready"))[-1] == "Sales"


def test_a_bad_sort_falls_back(page: Page) -> None:
    assert names(page("?sort=;drop"))[0] == "error"


def test_the_filter_narrows_and_says_what_it_covered(page: Page) -> None:
    said = page("?q=sales")
    assert set(names(said)) == {"Sales", "Sales.Delayed"}
    assert "2 queues of" in said


def test_no_match_says_what_was_looked_at(page: Page) -> None:
    assert "No queue matches" in page("?q=zzz")


def test_quiet_families_are_folded_and_can_be_opened(page: Page) -> None:
    assert "queues within target" in page()
    assert "Shop.Web.node-1" not in names(page())
    assert "Shop.Web.node-1" in names(page("?open=Shop"))


def test_hostile_names_are_text(page: Page) -> None:
    Queue.objects.create(schema="public", table='<script>alert("x")</script>', kind="input")
    said = page("?sort=name")
    assert "<script>alert" not in said
    assert "&lt;script&gt;alert" in said


def test_a_count_that_stopped_early_is_not_said_to_be_exact(console_database: str) -> None:
    now = timezone.now()
    known = {"at": now, "changed_at": now, "in_flight": 0, "delayed": 10_000, "delayed_how": "capped", "dead": 10_000}
    made = Queue.objects.create(schema="public", table="error", kind="error")
    LatestSample.objects.create(queue=made, how="capped", ready=10_000, depth=10_000, expired=0, **known)
    said = signed_in().get("/queues/").content.decode()
    cells = {
        name: re.findall(rf'<td[^>]* data-live="[^"]+[.]{name}"[^>]*>([^<]*)<', said) for name in ("delayed", "dead")
    }
    assert cells == {"delayed": ["10,000+"], "dead": ["10,000+"]}


def test_unknown_in_flight_count_is_shown_as_unknown(console_database: str) -> None:
    """As on a standby."""
    now = timezone.now()
    known = {"at": now, "changed_at": now, "in_flight": None, "ready": 5, "depth": 5, "expired": 0, "how": "counted"}
    LatestSample.objects.create(queue=Queue.objects.create(schema="public", table="Sales", kind="input"), **known)
    said = signed_in().get("/queues/public/Sales/").content.decode()
    assert "not known here: among the ready" in said
    assert re.search(r'In flight(?:(?!</b>).)*data-kind="unknown"', said, re.DOTALL)


def test_nothing_found_teaches(console_database: str) -> None:
    said = signed_in().get("/queues/").content.decode()
    assert "No queue-shaped table in" in said


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("kind:input", 0),
        ("state:critical sales", 0),
        ("owner:me", 1),
        ("state:bad", 1),
        ("kind:bad", 1),
        ('"two words"', 0),
        ("", 0),
    ],
)
def test_unreadable_filter_terms_are_reported(text: str, faults: int) -> None:
    assert len(filters.read(text).faults) == faults
