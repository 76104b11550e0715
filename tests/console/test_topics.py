"""What pages may follow, in one spelling each: who writes it in a thousand ways has it rendered once."""

import pytest

from pgqueue_admin.console import alerts, urls
from pgqueue_admin.console.overview.live import ORDERED
from pgqueue_admin.live import topics


@pytest.mark.parametrize(
    ("said", "argument"),
    [
        ("queues:", ""),
        ("queues:-ready", "-ready"),
        ("queues:name", "name"),
        ("queues:0-1", ""),
        ("queues:--ready", ""),
        ("queues:ready ", ""),
        ("queue:12", "12"),
        ("queue:00012", "12"),
        ("queue:x", None),
        ("op:7", "7"),
        ("op:", None),
        ("rows:8,3,3,12", "3,8,12"),
        ("rows:x,,3", "3"),
        ("rows:", None),
        ("warnings:8,3,3,12", "3,8,12"),
        ("warnings:", None),
        ("alerts:Europe/Berlin", "Europe/Berlin"),
        ("alerts:Nowhere/AtAll", "UTC"),
        ("alerts:", "UTC"),
        ("frame:1", ""),
        ("overview:2", ""),
        ("delayed:3", ""),
        ("workers:4", ""),
        ("nothing:5", None),
    ],
)
def test_an_argument_has_one_spelling(said: str, argument: str | None) -> None:
    assert urls.urlpatterns
    found = topics.find(said)
    assert (found and found[1]) == argument


@pytest.mark.parametrize(("topic", "most"), [("rows", ORDERED), ("warnings", alerts.PAGE)])
def test_rows_are_those_that_a_page_may_show(topic: str, most: int) -> None:
    found = topics.find(f"{topic}:" + ",".join(map(str, range(1000))))
    assert found
    assert found[1].count(",") == most - 1
