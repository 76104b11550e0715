"""A queue has one colour on every page: the worse of its targets and its open warnings (DESIGN decision 4)."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console.queues.detail import page_data
from pgqueue_admin.models import Alert, LatestSample, Queue
from tests.console.pages import matched
from tests.console.sampled import signed_in


def queue(**figures: object) -> Queue:
    made = Queue.objects.create(schema="public", table="Billing", kind="input", target_age_seconds=60, target_dead=0)
    now = timezone.now()
    seen = {"ready": 1, "depth": 1, "dead": 0, "oldest_at": now, **figures}
    LatestSample.objects.create(queue=made, at=now, changed_at=now, **seen)
    return made


def warn(severity: str, **facts: object) -> None:
    now = timezone.now() - timedelta(minutes=3)
    about = {"kind": "no_consumer", "subject": "Billing", "queue": '"public"."Billing"', "sentence": "Nobody"}
    Alert.objects.create(**about, severity=severity, opened_at=now, last_seen_at=now, **facts)


def colours(client: Client) -> set[str]:
    """The colours on Overview, on Queues and on its own page."""
    overview, queues, own = (client.get(path).content.decode() for path in ("/", "/queues/", "/queues/public/Billing/"))
    row = r'<tr role="row" class="(\w*)" data-row'
    said = matched(r'data-live="now.state" data-quiet>(.*?)</span>\s*<span class="tag line"', own, re.DOTALL)
    word = "crit" if "critical" in said else "warn" if "warning" in said else ""
    return {matched(row, overview), matched(row, queues), word}


@pytest.mark.parametrize(
    ("figures", "warnings", "colour"),
    [
        ({}, [], ""),
        ({}, ["warning"], "warn"),
        ({}, ["warning", "critical"], "crit"),
        ({"dead": 3}, [], "crit"),
        ({"dead": 3}, ["warning"], "crit"),
        ({"error": "cannot be read"}, [], "warn"),
        ({"error": "cannot be read"}, ["critical"], "crit"),
    ],
)
def test_the_worse_of_target_and_warning_on_every_page(
    console_database: str, figures: dict[str, object], warnings: list[str], colour: str
) -> None:
    queue(**figures)
    for number, severity in enumerate(warnings):
        warn(severity, cause=str(number))
    assert colours(signed_in()) == {colour}


@pytest.mark.parametrize(
    ("count", "more"), [(3, []), (4, ["1 more warning of this queue"]), (5, ["2 more warnings of this queue"])]
)
def test_a_queue_shows_three_warnings_and_counts_the_others(console_database: str, count: int, more: list[str]) -> None:
    queue()
    for number in range(count):
        warn("critical", cause=str(number))
    own = signed_in().get("/queues/public/Billing/").content.decode().replace("\u00a0", " ")
    assert own.count("See who runs") == count
    assert re.findall(r"\d+ more warnings? of this queue", own) == more


def test_acknowledged_warning_colours_nothing(console_database: str) -> None:
    made = queue()
    warn("critical", acknowledged_by="ana", acknowledged_at=timezone.now())
    assert colours(signed_in()) == {""}
    assert page_data.live(str(made.pk))["now.state"] == ""


def test_an_open_page_is_told_the_new_colour(console_database: str) -> None:
    made = queue()
    warn("critical")
    assert "critical" in page_data.live(str(made.pk))["now.state"]


def test_a_warning_leads_to_its_next_step(console_database: str) -> None:
    queue()
    warn("critical")
    own = signed_in().get("/queues/public/Billing/").content.decode()
    assert re.search(r'<a class="b" href="/workers/">See who runs</a>', own)
