"""Every address of a console that is below a path: nothing that it answers leads out of there."""

import re
import uuid
from collections.abc import Iterator
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from django.urls import clear_url_caches

from pgqueue_admin.console import url_converters
from pgqueue_admin.live import topics
from pgqueue_admin.models import Endpoint, Queue
from tests.console.sampled import sample
from tests.hostile import crawl
from tests.hostile.hostile_site import World

BELOW = "/below/"
# Static files are below the same path where a program starts with it: here they were named before.
ELSEWHERE = ("/static/",)
LEADS = re.compile("href|src|action|formaction|poster|content|hx-(get|post|push-url)|data-.*")


class Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attributes if LEADS.fullmatch(name)]


def out_of_it(html: str) -> list[str]:
    reader = Addresses()
    reader.feed(html)
    reader.close()
    paths = [each for each in reader.found if re.match("/[^/]|/$", each)]
    return [each for each in paths if not each.startswith((BELOW, *ELSEWHERE))]


@pytest.fixture(scope="module")
def walked(world: World) -> Iterator[SimpleNamespace]:
    """What is answered there, and each topic that a page follows."""
    with override_settings(ROOT_URLCONF="tests.hostile.below_a_path"):
        _forget_addresses()
        sample()
        client = world.client("root", raise_request_exception=False)
        answers = [_kept(*each) for each in crawl.get(client, crawl.few(crawl.paths(world), 3))]
        yield SimpleNamespace(answers=answers)
    _forget_addresses()


def _forget_addresses() -> None:
    """Those of rows are kept for as long as a process lives."""
    clear_url_caches()
    for kept in (url_converters.queue, url_converters.failure, url_converters._around_archive_id):
        kept.cache_clear()


def _kept(name: str, path: str, answer: Any) -> SimpleNamespace:
    html = answer.content.decode() if not answer.streaming and "html" in answer["Content-Type"] else ""
    return SimpleNamespace(name=name, path=path, html=html, leads_to=answer.get("Location", ""))


def test_no_page_leads_out_of_it(walked: SimpleNamespace) -> None:
    assert len([each for each in walked.answers if each.html]) > 100
    assert {each.path: found for each in walked.answers if (found := out_of_it(each.html))} == {}


def test_nobody_is_sent_out_of_it(walked: SimpleNamespace) -> None:
    sent = {each.path: each.leads_to for each in walked.answers if each.leads_to}
    assert sent
    assert {path: to for path, to in sent.items() if not urlsplit(to).path.startswith(BELOW)} == {}


def test_no_figure_that_changes_leads_out_of_it(world: World, walked: SimpleNamespace) -> None:
    """What an open page is told is made elsewhere than the page."""
    said = "".join(each.html for each in walked.answers)
    followed = {each for named in re.findall(r'data-topics="([^"]*)"', said) for each in named.split()}
    gone = f"waiting:{Queue.objects.get(schema='public', table='Sales').pk}:{uuid.uuid4()}"
    endpoint = f"endpoint:{Endpoint.objects.order_by('pk')[0].pk}"
    found = [each for each in map(topics.find, {*followed, "frame", gone, endpoint}) if each]
    told = {f"{topic.name}:{about}": topic.render(about) for topic, about in found}
    assert topics._topics.keys() - {topic.name for topic, _ in found} == set()
    assert f"{BELOW}messages/" in told[gone]["message.left"]
    assert {name: out for name, said in told.items() if (out := out_of_it("".join(map(str, said.values()))))} == {}
