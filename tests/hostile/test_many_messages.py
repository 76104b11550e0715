"""A hundred thousand dead messages, each of them hostile: every list to its end, every group, and pages of messages.

Here a few hundred; ``PGQUEUE_TEST_HOSTILE_MESSAGES=100000`` is all of it. Of messages each nth has its pages looked at.
"""

import os
import re
import time
from collections.abc import Iterator
from html import unescape
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from pgqueue_admin.archive import ingester
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations import lifecycle, runner, selection
from tests.hostile import markup
from tests.hostile.hostile_site import World
from tests.hostile.payloads import BODIES, LINK, MARKUP, NAMES, TURNED, UNREADABLE, headers
from tests.waiting import PATIENCE

MESSAGES = int(os.environ.get("PGQUEUE_TEST_HOSTILE_MESSAGES", 200))
SAMPLES, GROUPS = 12, 20
TOO_SLOW = "or narrow what is asked for"  # what a page says whose looks were ended by their time
NEXT = re.compile(r'<a [^>]*rel="next"[^>]*href="([^"]+)"')
NEW = "died:1h"  # not those that were recorded
EACH = f"/archive/?q={NEW}"
LISTS = (
    "/failures/", "/failures/?by=type", "/failures/?by=queue", "/failures/?by=endpoint", EACH,
    f"{EACH}&sort=-size&facets=open", f"{EACH}+state:dead&sort=-age", f"{EACH}+state:dead+{TURNED}",
    f"{EACH}+state:dead+pwned", f"{EACH}+state:dead+nobody+-body:x", "/bin/", "/audit/?facets=open", "/operations/",
    "/views/", f"/conversations/{LINK}/",
)  # fmt: skip
OF_MESSAGE = ("archived_message", "archived_body", "archived_headers", "edit_message", "copy_archived")


def hostile(number: int) -> tuple[str, bytes | None]:
    """Headers and body: the same in no two."""
    name, body = NAMES[number % len(NAMES)], BODIES[number % len(BODIES)]
    if number % 50 == 0:
        return UNREADABLE[number // 50 % len(UNREADABLE)], body
    more = {
        "NServiceBus.MessageId": f"{number} {MARKUP}",
        "NServiceBus.EnclosedMessageTypes": f"{name}{number % 70}, {MARKUP}",
        "NServiceBus.FailedQ": f'"public"."{name}"' if number % 3 else f"{name}{number}",
        "NServiceBus.ProcessingEndpoint": f"{name} {number % 90}",
        "NServiceBus.ExceptionInfo.ExceptionType": f"Shop.{name}.E{number % 300}",
        "NServiceBus.ExceptionInfo.Message": f"{MARKUP} {name} {number}",
        f"{name}{number}": name,
    }
    return headers(**more), body


@pytest.fixture(scope="module")
def filled(world: World) -> World:
    """Into the archive by the way that they come: an error queue. Some lie in the bin, and a retry of all is frozen."""
    errors = Address("public", "error")
    rows = (hostile(number) for number in range(MESSAGES))
    with world.queues.raw.cursor().copy('copy "public"."error" (id, headers, body) from stdin') as copy:
        for number, (text, body) in enumerate(rows):
            copy.write_row((UUID(int=number + 1), text, body))
    while ingester.ingest(world.queues, errors).full:
        pass
    root = User.objects.get(username="root")
    dead = world.dead
    discarded = selection.freeze("discard", dead[: len(dead) // 10], root, "console", MARKUP)
    lifecycle.start(discarded.pk, root)
    runner.run(discarded.pk)
    selection.freeze("retry", ArchiveFilter(state="dead"), root, "console", MARKUP, MARKUP)
    return world


@pytest.fixture
def client(filled: World) -> Client:
    return filled.client("root", raise_request_exception=False)


def looked_at(client: Client, path: str) -> str:
    """The page, of which all holds; "" of what is no page."""
    began = time.monotonic()
    answer = client.get(path)
    content = b"".join(answer) if answer.streaming else answer.content
    spent = time.monotonic() - began
    assert answer.status_code == 200, (path, answer.status_code)
    assert spent < PATIENCE, f"{path} took {spent:.1f} s"
    if "html" not in answer["Content-Type"]:
        assert answer["X-Content-Type-Options"] == "nosniff"
        return ""
    page = content.decode()
    assert TOO_SLOW not in page, path
    assert markup.read(page) == ([], []), path
    return page


def walked(client: Client, path: str) -> Iterator[str]:
    """Each page of a list, to its end."""
    here: str | None = path
    while here:
        page = looked_at(client, here)
        yield page
        found = NEXT.search(page)
        here = f"{path.partition('?')[0]}{unescape(found[1])}" if found else None


def test_they_are_there(filled: World) -> None:
    assert len(filled.dead) >= MESSAGES
    assert filled.queues.value('select count(*) from "public"."error"') == 0


@pytest.mark.parametrize("path", LISTS)
def test_every_list_to_its_end(client: Client, path: str) -> None:
    pages = list(walked(client, path))
    if path == EACH:
        assert sum(len(re.findall(r'name="id" value="\d+"', page)) for page in pages) >= MESSAGES


def test_groups(client: Client, filled: World) -> None:
    """The largest, and of the others each nth."""
    asked = (
        "select fingerprint from messages.message_dead where fingerprint is not null group by 1 order by count(*) desc"
    )
    found = [row.fingerprint for row in filled.queues.all(asked)]
    for each in found[:: max(1, len(found) // GROUPS)]:
        looked_at(client, reverse("failure", args=[each]))


@pytest.mark.parametrize("name", OF_MESSAGE)
def test_messages(client: Client, filled: World, name: str) -> None:
    dead = filled.dead[-MESSAGES:]
    for archive_id in dead[:: max(1, len(dead) // SAMPLES)]:
        answer = client.get(reverse(name, args=[archive_id]))
        assert answer.status_code in {200, 404}  # 404: the file of a body that there is not
        if answer.status_code == 200:
            looked_at(client, reverse(name, args=[archive_id]))


def test_operations(client: Client, filled: World) -> None:
    """What was done to a tenth of them, and the preview of a retry of all others."""
    for pk in Operation.objects.order_by("-pk").values_list("pk", flat=True)[:2]:
        for more in ("", "?plan=careful", "?plan=none", "?o=all"):
            looked_at(client, f"{reverse('operation', args=[pk])}{more}")


def test_the_export_has_each(client: Client, filled: World) -> None:
    """As JSON lines: streamed, so nobody waits for the whole of it."""
    answer = client.post("/archive/export/", {"q": NEW, "format": "jsonl"})
    assert answer.status_code == 200
    lines = b"".join(answer).splitlines()
    assert len(lines) >= MESSAGES
