"""Topics of pages have one spelling each: variants of an address cannot multiply rendering."""

from datetime import timedelta

import pytest
from django.test import Client

from pgqueue_admin.console import urls
from pgqueue_admin.console.alerts import rows
from pgqueue_admin.console.overview.live import SHOWN
from pgqueue_admin.console.workers import cells
from pgqueue_admin.live import topics
from pgqueue_admin.models import Endpoint, LatestSample, Queue, database_clock
from tests.console.pages import matched


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
        ("delayed:3", ""),
        ("schedules:3", ""),
        ("workers:4", ""),
        ("endpoint:03", "3"),
        ("messages:04", "4"),
        ("nothing:5", None),
    ],
)
def test_an_argument_has_one_spelling(said: str, argument: str | None) -> None:
    assert urls.urlpatterns
    found = topics.find(said)
    assert (found and found[1]) == argument


def test_overview_topics_are_shared_by_quarter_of_an_hour() -> None:
    """Users whose last visits fall into the same quarter of an hour share one rendering."""
    assert urls.urlpatterns
    now = int(database_clock.counted().timestamp())
    asked = [topics.find(f"overview:{said}") for said in (now - 3600, now - now % 900, "x", "", "1", now + 3600)]
    arguments = [found[1] for found in asked if found]
    assert len(arguments) == len(asked)
    assert all(int(argument) % 900 == 0 for argument in arguments)
    assert now - 3600 - 900 < int(arguments[0]) <= now - 3600
    assert len(set(arguments[2:])) == 1, "what nobody knows is said as one"


def test_a_title_follows_what_its_page_is_about(as_viewer: Client, console_database: str) -> None:
    endpoint = Endpoint.objects.create(name="Slow", table="Slow", desired_processes=0)
    queue = Queue.objects.create(schema="public", table="Slow", kind="input", target_age_seconds=60)
    now = database_clock.now()
    LatestSample.objects.create(queue=queue, at=now, changed_at=now, ready=1, depth=1, oldest_at=now)
    pages = ("/endpoints/Slow/", "/queues/public/Slow/", "/workers/", "/endpoints/")
    followed(as_viewer, pages)
    LatestSample.objects.update(oldest_at=now - timedelta(hours=1))
    Endpoint.objects.update(desired_processes=1, paused=True)
    titles = followed(as_viewer, pages)
    assert titles[:3] == ["Slow, short of processes", "Slow, critical", "Slow has no process; 0 of 1 run"]
    assert titles[3:] == [""], "it says what list it is"
    for untitled in (f"messages:{queue.pk}", "alert:UTC"):
        found = topics.find(untitled)
        assert found
        assert "@title" not in found[0].render(found[1])
    assert cells.of_endpoint(str(endpoint.pk + 1)) == {}


def followed(client: Client, pages: tuple[str, ...]) -> list[str]:
    """The title that each page's topic sends, which equals the title of the page."""
    sent = []
    for address in pages:
        html = client.get(address).content.decode()
        found = topics.find(matched('data-topics="([^"]*)"', html))
        assert found, address
        topic, argument = found
        said = topic.render(argument).get("@title", "")
        assert f"<title>{said}" in html
        sent.append(said)
    return sent


@pytest.mark.parametrize(("topic", "most"), [("rows", SHOWN), ("warnings", rows.MOST)])
def test_rows_are_those_that_a_page_may_show(topic: str, most: int) -> None:
    found = topics.find(f"{topic}:" + ",".join(map(str, range(1000))))
    assert found
    assert found[1].count(",") == most - 1
