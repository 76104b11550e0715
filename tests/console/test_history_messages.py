"""Messages of history on pages: from a figure to each of them, and what is said where something is unknown."""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.history.storage import message_lookup
from pgqueue_admin.models import DataFile
from pgqueue_admin.services.operations import single
from tests.console.pages import matched
from tests.history.events import buried, event, kept, midnight, midnight_passes, moved_back
from tests.history.files import HEADERS, TEN, message, write
from tests.history.rollup_factory import rolled_up

STRETCH = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T11:00:00Z"}
pytestmark = pytest.mark.usefixtures("console_database", "one_day")


@pytest.mark.parametrize(
    ("body", "size", "said"),
    [
        (None, None, "NULL"),
        (None, 7, "none of it"),
        (hashlib.sha256(b"x").digest(), 7, "SHA-256"),
        (b"x" * 4096, 9000, "first 4,096 bytes"),
    ],
)
def test_page_says_which_part_of_a_body_is_not_kept(
    history: Path, as_viewer: Client, body: bytes | None, size: int | None, said: str
) -> None:
    write(history, message(1, body=body, body_bytes=size))
    assert said in as_viewer.get("/trends/messages/1/", {"source": "audit", "at": TEN.isoformat()}).content.decode()


def test_from_a_figure_to_its_messages_and_each_of_them(history: Path, as_viewer: Client) -> None:
    write(history, message(7, TEN + timedelta(seconds=1), headers=HEADERS, type="Shop.<i>"))
    listed = as_viewer.get("/trends/messages/", {**STRETCH, "result": "success"}).content.decode()
    assert re.search(r"1\s+message, counted in\s+1\s+file", re.sub(r"<[^>]*>|&nbsp;", " ", listed))
    address = unescape(matched(r'href="(/trends/messages/7/[^"]*)"', listed))
    shown = as_viewer.get(address).content.decode()
    assert "hello" in shown
    assert "&lt;b&gt;" in shown
    assert "<i>" not in shown


def test_lookup_over_the_time_limit_names_the_limit(
    history: Path, as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(history, message(1))
    monkeypatch.setattr(message_lookup, "WITHIN", 0.0)
    assert "longer than 0 s and were not read" in as_viewer.get("/trends/messages/", STRETCH).content.decode()


@pytest.mark.parametrize("at", ["", "never", "2026-11-14", "2026-11-14T10:00:01", "9999-12-31T23:59:59.999999Z"])
def test_an_address_of_nothing_is_not_there(history: Path, as_viewer: Client, at: str) -> None:
    write(history, message(1))
    assert as_viewer.get("/trends/messages/1/", {"source": "audit", "at": at}).status_code == 404
    assert as_viewer.get(f"/trends/messages/{10**30}/", {"source": "audit", "at": TEN.isoformat()}).status_code == 404


def test_a_window_that_has_no_end_ends_now(history: Path, as_viewer: Client) -> None:
    """Its last step ends later: nothing finished in the future."""
    for asked, said in (({}, "to now: 0 messages"), ({"at": "2026-11-14T10:40:00Z"}, "to 14 Nov 11:00: 0 messages")):
        page = as_viewer.get("/trends/messages/", asked).content.decode()
        assert said in " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).replace(" :", ":").split())


def test_history_messages_need_a_sign_in(client: Client) -> None:
    assert client.get("/trends/messages/").status_code == 302
    assert client.get("/trends/messages/1/").status_code == 302


def test_files_that_cannot_be_read_leave_the_page(history: Path, as_viewer: Client) -> None:
    write(history, message(1)).unlink()
    answer = as_viewer.get("/trends/messages/", STRETCH)
    assert answer.status_code == 200
    assert "Not known:" in answer.content.decode()


def test_a_figure_of_trends_leads_there(as_viewer: Client) -> None:
    rolled_up(TEN + timedelta(minutes=5), 41, endpoint="Sales")
    asked = {"w": "1h", "at": "2026-11-14T10:40:00Z", "endpoint": "Sales", "table": "steps"}
    page = as_viewer.get("/trends/", asked).content.decode()
    address = unescape(matched(r'href="(/trends/messages/[^"]*)">\s*(?:<[^>]*>)*41', page))
    assert parse_qs(urlsplit(address).query) == {
        "since": ["2026-11-14T10:05:00Z"], "until": ["2026-11-14T10:06:00Z"], "endpoint": ["Sales"],
        "result": ["success"],
    }  # fmt: skip


@pytest.fixture
def archive(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    """An archive that a driver has registered."""
    connection = connect(console_database)
    assert [each.table for each in sources(connection)] == [ARCHIVE]
    return connection


def became(client: Client, seq: int = 1, source: str = ARCHIVE) -> str:
    """The page's section as text."""
    page = client.get(f"/trends/messages/{seq}/", {"source": source, "at": TEN.isoformat()}).content.decode()
    section = page.partition('id="log"')[2].partition("</section>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", section)).split())


def test_outcome_is_shown_from_files_after_the_archive_was_pruned(
    history: Path, as_viewer: Client, archive: Connection
) -> None:
    ana, dead = User.objects.create_superuser("ana"), buried(archive)
    single.act("discard", dead, ana, "console", "a <b>test</b> order")
    single.act("restore", dead, ana, "console")
    event(archive, buried(archive), verb="retried")  # another message
    moved_back(archive, 1)
    kept(archive, history)
    archive.run("delete from messages.message_archive")
    write(history, message(1, source=ARCHIVE, result="failed"), message(1))
    told = became(as_viewer)
    assert re.search(r"Restored, operation \d+ ana none .* Discarded, operation \d+ ana a <b>test</b> order ", told)
    assert "Retried" not in told
    assert f"the last one being {midnight(-1):%-d %b %Y}." in told
    assert became(as_viewer, source="audit") == ""


def test_events_of_another_message_with_its_seq_are_not_shown(
    history: Path, as_viewer: Client, archive: Connection
) -> None:
    """A recreated archive restarts its numbers. An event without a message id may belong to this message."""
    for number, (message_id, verb) in enumerate((("of-old", "discarded"), ("of-now", "retried"), (None, "restored"))):
        event(archive, buried(archive, message_id=message_id), verb=verb, days=-2 - number)
        assert kept(archive, history) == 1
        midnight_passes()
        archive.run("delete from messages.message_archive")
        archive.run("select setval('messages.message_archive_seq_seq', 1, false)")
    write(history, message(1, source=ARCHIVE, result="failed", message_id="of-now"))
    told = became(as_viewer)
    assert [verb in told for verb in ("Retried", "Restored", "Discarded")] == [True, True, False]


def test_message_without_events_says_up_to_when_that_holds(
    history: Path, as_viewer: Client, archive: Connection
) -> None:
    buried(archive)
    write(history, message(1, source=ARCHIVE, result="failed"))
    assert became(as_viewer) == ""  # nobody has looked yet
    kept(archive, history)
    assert "Nothing. Files of history know this of whole days (UTC)" in became(as_viewer)


def test_missing_event_file_makes_the_outcome_unknown(history: Path, as_viewer: Client, archive: Connection) -> None:
    event(archive, buried(archive))
    kept(archive, history)
    (history / DataFile.objects.get(dataset="events").path).unlink()
    write(history, message(1, source=ARCHIVE, result="failed"))
    assert "Not known: The files in" in became(as_viewer)
