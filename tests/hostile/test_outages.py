"""Either database down under a running web server, each behind a wire of its own: said clearly, and nothing lost."""

import itertools
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import LatestSample, Operation
from tests.hostile import crawl
from tests.hostile.hostile_site import World
from tests.hostile.proxy import Proxy
from tests.live.site import events, serve
from tests.waiting import until

pytestmark = pytest.mark.chaos

STALE = "Figures are from"
NO_ANSWER = "The database does not answer."
# those whose own part is read from the queues
LOOKING = {
    *(
        "queue_ends",
        "messages",
        "waiting_message",
        "lease_message",
        "archived_message",
        "archive",
        "find_message",
        "conversation",
    ),
    *("schedules", "schedule", "outboxes", "outbox", "outbox_record", "delayed", "subscriptions", "unwatched"),
}
TRIED = {
    *("healthz", "readyz", "overview", "queues", "queue", "messages", "archive", "archived_message", "operation"),
    *("alerts", "workers", "settings", "endpoint", "admin:pgqueue_archivedmessage_changelist"),
}


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[SimpleNamespace]:
    console, queues = Proxy(world.console_dsn), Proxy(world.queues_dsn)
    LatestSample.objects.update(at=timezone.now() - timedelta(seconds=30))
    with serve(console.dsn, QUEUES_URL=queues.dsn, ENVIRONMENT="production", PGQUEUE_SAMPLE_SECONDS="1") as served:
        browser = served.browser(User.objects.get(username="root"))
        yield SimpleNamespace(console=console, queues=queues, browser=browser, world=world)
        browser.close()


@pytest.fixture(scope="module")
def one_of_each(world: World) -> list[tuple[str, str]]:
    """An example of each page of the console; of Django admin, those of our own nouns."""
    found = {name: path for name, path in crawl.paths(world) if name != "live"}
    return [(name, path) for name, path in found.items() if not name.startswith("admin:") or ":pgqueue_" in name]


def get_all(site: SimpleNamespace, paths: list[tuple[str, str]]) -> dict[str, Any]:
    """All at once, as many people would."""
    with ThreadPoolExecutor(8) as people:
        answers = people.map(lambda each: site.browser.get(each[1]), paths)
        return {name: answer for (name, _), answer in zip(paths, answers, strict=True)}


def token(site: SimpleNamespace, path: str = "/archive/") -> str:
    page = site.browser.get(path).text
    return page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]


def test_a_body_of_50_mb_passes_through_a_web_server_that_stays_small(site: SimpleNamespace) -> None:
    row, large = uuid.uuid4(), 50_000_000
    values = {"id": row, "ttbr_ms": None, "headers": "{}", "body": b"0123456789" * (large // 10)}
    site.world.queues.run(postgresql().queue.send(table=Address("public", "Sales")), values)
    page = f"/queues/public/Sales/messages/{row}/"
    site.browser.get("/queues/public/Sales/messages/?order=newest")
    before = _most_memory(site.browser.base_url.port)
    for view in ("", "?body=hex", "?body=raw&from=49999000", "?body=pretty", "?body=bodystring"):
        answer = site.browser.get(f"{page}{view}")
        assert answer.status_code == 200
        assert len(answer.content) < 1_000_000
    site.browser.get("/queues/public/Sales/messages/?order=newest&cols=bodyline")
    with site.browser.stream("GET", f"{page}body/") as download:
        assert sum(len(piece) for piece in download.iter_bytes()) == large
    assert _most_memory(site.browser.base_url.port) - before < 25_000_000


def _most_memory(port: int) -> int:
    """The most that the web server's process ever held, in bytes."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            asked = (process / "cmdline").read_bytes().split(b"\0")
            if b"uvicorn" in asked and str(port).encode() in asked:
                (line,) = [each for each in (process / "status").read_text().splitlines() if each.startswith("VmHWM")]
                return int(line.split()[1]) * 1024
    raise AssertionError("no web server")


def test_with_the_queues_down_every_page_is_there_and_says_so(
    site: SimpleNamespace, one_of_each: list[tuple[str, str]]
) -> None:
    site.browser.get("/archive/")  # a session is open when it happens
    with site.queues.down():
        began = time.monotonic()
        answers = get_all(site, one_of_each)
        took = time.monotonic() - began
    wrong = {name: answer.status_code for name, answer in answers.items() if not _answered(name, answer.status_code)}
    assert wrong == {}
    pages = {name: answer for name, answer in answers.items() if 'class="shell"' in answer.text}
    assert {name for name, answer in pages.items() if STALE not in answer.text} == set()
    assert {name for name in LOOKING if NO_ANSWER not in answers[name].text} == set()
    assert "queue database" in answers["readyz"].json()["parts"]
    assert took < 40, "nobody waits for long"


OUTBOXES_OF_ADMIN = {
    "admin:pgqueue_foreignoutbox_changelist", "admin:pgqueue_outbox_record", "admin:pgqueue_outbox_records"
}  # fmt: skip


def _answered(name: str, status: int) -> bool:
    if name in crawl.ACTS:
        return status == 405
    if name.endswith("_body") or name == "archived_headers" or name == "readyz" or name in OUTBOXES_OF_ADMIN:
        return status == 503
    if name == "operation_edit":
        return status == 303  # what was started is not edited: its page
    if name in ("worker_log_whole", "masking_rule"):
        return status == 404  # no process of this world has printed anything, and there is no rule
    return status in {200, 302} or (name.startswith("admin:") and status in {403, 404})


def test_with_the_queues_down_acts_are_refused_and_done_later(site: SimpleNamespace) -> None:
    dead, asked = site.world.dead[-1], {"act": "discard", "at_once": "yes", "next": "/archive/"}
    fields = {**asked, "id": dead, "csrfmiddlewaretoken": token(site)}
    before = site.world.state()
    with site.queues.down():
        one = site.browser.post("/operations/", data=fields, follow_redirects=True)
        many = site.browser.post("/operations/", data={**fields, "at_once": ""}, follow_redirects=True)
    for answer in (one, many):
        assert answer.status_code == 200
        assert "Nothing was discarded" in answer.text
        assert NO_ANSWER in answer.text
    assert site.world.state() == before
    until(lambda: "message discarded" in _posted(site, fields), what="the queues are back")
    assert site.world.queues.value(f"select state from messages.message_archive where id = {dead}") == "discarded"


def _posted(site: SimpleNamespace, fields: dict[str, Any]) -> str:
    return site.browser.post("/operations/", data=fields, follow_redirects=True).text


def test_a_frozen_operation_that_was_started_while_the_queues_are_down_waits(site: SimpleNamespace) -> None:
    operation = Operation.objects.get(state="frozen")
    fields = {"count": operation.count, "reason": "x", "csrfmiddlewaretoken": token(site)}
    with site.queues.down():
        answer = site.browser.post(reverse("operation_start", args=[operation.pk]), data=fields, follow_redirects=True)
        assert answer.status_code == 200
        operation.refresh_from_db()
    assert (operation.state, operation.done) == ("waiting", 0)


def test_with_the_console_down_a_static_page_tries_again(
    site: SimpleNamespace, one_of_each: list[tuple[str, str]]
) -> None:
    fields = {"csrfmiddlewaretoken": token(site), "next": "/archive/?q=ü"}
    acts = ["/operations/", "/endpoints/CAPITALS/start/", "/alerts/1/acknowledgement/"]
    before = site.world.state()
    with site.console.down():
        answers = get_all(site, [each for each in one_of_each if each[0] in TRIED])
        acted = [site.browser.post(path, data=fields) for path in acts]
    assert (answers.pop("healthz").status_code, answers.pop("readyz").status_code) == (200, 503)
    assert len(answers) == len(TRIED) - 2
    for answer in (*answers.values(), *acted):
        assert answer.status_code == 503, answer.url
        assert answer.headers["Retry-After"] == "5"
        assert "own database does not answer" in answer.text
    assert {answer.headers["Refresh"] for answer in answers.values()} == {"5"}
    for answer in acted:  # the act's own address is no page to open again, and nothing presses it a second time
        assert answer.headers["Refresh"] == "5; url=/archive/?q=%C3%BC"
        assert "may or may not have been done" in answer.text
    assert site.world.state() == before


def test_with_the_console_down_nobody_waits_and_it_is_back_at_once(site: SimpleNamespace) -> None:
    """Each page used to wait 5 s for a session."""
    site.browser.get("/")  # sessions are open when it happens
    with site.console.down():
        began = time.monotonic()
        assert [site.browser.get(path).status_code for path in ("/", "/queues/", "/archive/", "/alerts/")] == [503] * 4
        took = time.monotonic() - began
    until(lambda: site.browser.get("/").status_code == 200, 20, "the console is back")
    assert took < 10


def test_the_probe_names_who_is_down(site: SimpleNamespace) -> None:
    until(lambda: site.browser.get("/").status_code == 200, what="the console is back")
    until(lambda: not _queues_down(site), what="the queues are back")
    with site.console.down():
        said = site.browser.get("/readyz").json()["parts"]
    assert said["console database"] != "ok"
    assert said["queue database"] == "ok"
    until(lambda: site.browser.get("/").status_code == 200, what="the console is back")
    with site.queues.down():
        said = until(lambda: _queues_down(site), what="the queues are not named")
    assert said["console database"] == "ok"


def _queues_down(site: SimpleNamespace) -> dict[str, str] | None:
    said: dict[str, str] = site.browser.get("/readyz").json()["parts"]
    return said if said["queue database"] != "ok" else None


def test_an_open_page_keeps_its_figures_and_gets_the_next_when_the_console_is_back(site: SimpleNamespace) -> None:
    queue = LatestSample.objects.get(queue__schema="public", queue__table="Billing").queue_id
    until(lambda: site.browser.get("/").status_code == 200, what="the console is back")
    with site.browser.stream("GET", f"/live/?t=queue:{queue}") as stream:
        told = events(stream.iter_lines())
        next(data for _, data in told if "now.ready" in data)
        with site.console.down():
            while_down = list(itertools.takewhile(lambda each: each[0] != "beat", told))  # else it is not alive
            LatestSample.objects.filter(queue=queue).update(ready=4_321)
        assert [data for _, data in while_down if "now.ready" in data] == [], "no figure is taken away"
        assert next(data for _, data in told if "4,321" in data.get("now.ready", ""))


def test_the_stream_of_a_session_that_cannot_be_read(site: SimpleNamespace) -> None:
    with site.console.down():
        answer = site.browser.get("/live/?t=frame")
    assert answer.status_code == 503
    assert any(name.startswith("sessionid") for name in site.browser.cookies), "nobody is signed out by an outage"
