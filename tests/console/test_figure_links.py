"""Each figure of Trends links to exactly the messages it counts: in the archive, or in history where that is pruned."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import database_clock
from pgqueue_admin.services.content_access import ALL
from tests.console.pages import Connect, Page, drawn, matched
from tests.history.files import message, write
from tests.history.rollup_factory import failed, rolled_up, told

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ASKED = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T10:10:00Z", "table": "steps"}
BILLING = '"public"."Billing"'
COUNTED = [("failed", "transport"), ("lock_expired", "lease"), ("rejected", "lease")]  # history counts these as failed
Pruned = Callable[[timedelta], None]


@pytest.fixture
def page(as_viewer: Client) -> Page:
    return lambda **asked: as_viewer.get("/trends/", {**ASKED, **asked}).content.decode()


@pytest.fixture
def pruned(settings: Settings) -> Pruned:
    """Let the archive begin ``after`` after TEN, in whole days."""

    def prune(after: timedelta) -> None:
        days = (database_clock.now() - TEN - after) // DAY
        settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": days}

    return prune


@pytest.fixture
def archived(console_database: str, connect: Connect) -> Connection:
    """Messages of one minute: some that history counts as failed, and some that it does not."""
    connection = connect(console_database)
    for result, kind in [*COUNTED, ("success", "lease"), ("failed", "control")]:
        store.archive_failed(
            connection, DeadMessage(queue=BILLING, result=result, kind=kind, died_at=TEN + 5.5 * MINUTE)
        )
    return connection


def found_in_archive(connection: Connection, address: str) -> list[tuple[str, str]]:
    query = search.read(parse_qs(urlsplit(address).query)["q"][0], ALL)
    assert query.error is None
    return sorted((each.result, each.kind) for each in store.page(connection, query.filter, None, 10).messages)


def test_a_failed_step_leads_to_what_was_rejected_and_lost_its_lock_too(page: Page, archived: Connection) -> None:
    for result in ("failed", "rejected", "lock_expired"):
        rolled_up(TEN + 5 * MINUTE, result=result, queue=BILLING)
    text = page(queue=BILLING)
    assert drawn(text)["failed"][5] == len(COUNTED)
    address = unescape(matched(r'<a href="(/archive/[^"]*)">\s*(?:<[^>]*>)*3<', text))
    assert found_in_archive(archived, address) == COUNTED
    pressed = drawn(text)["messages"].replace("SINCE", "2026-11-14T10:05:00Z").replace("UNTIL", "2026-11-14T10:06:00Z")
    assert found_in_archive(archived, pressed) == COUNTED


def test_lease_failures_are_found_by_the_client_that_handled_them(page: Page, archived: Connection) -> None:
    """Lease clients write one name into a column of their own; names of endpoints may be shortened there."""
    archived.run(LEASED, {"died_at": TEN + 5.5 * MINUTE})
    store.archive_failed(
        archived, DeadMessage(queue=BILLING, endpoint="worker-1, a longer one", died_at=TEN + 5.5 * MINUTE)
    )
    rolled_up(TEN + 5 * MINUTE, 2, result="failed", endpoint="worker-1")
    pressed = drawn(page(endpoint="worker-1"))["messages"]
    pressed = pressed.replace("SINCE", "2026-11-14T10:05Z").replace("UNTIL", "2026-11-14T10:06Z")
    assert found_in_archive(archived, pressed) == [("lock_expired", "lease"), ("rejected", "lease")]


LEASED = """
insert into messages.message_archive (created_at, message, result, handled_by, died_at)
select now(), '{}', result::message_status, 'worker-1', %(died_at)s
from unnest(array['rejected', 'lock_expired', 'success']) result
"""


@pytest.mark.parametrize("name", ["Msg", 'Say "hi"', "=Msg", "Msg*"])
def test_a_figure_of_a_name_leads_to_that_name_alone(page: Page, archived: Connection, name: str) -> None:
    """A typed suffix matches all longer names; a clicked figure means only what it counts."""
    for longer in (name, f"Hn.Ns.{name}", f"Outer+{name}", f"{name}s"):
        about = {"message_type": longer, "endpoint": longer, "exception_type": longer}
        store.archive_failed(archived, DeadMessage(queue=BILLING, died_at=TEN + 5.5 * MINUTE, **about))  # type: ignore[arg-type]
    rolled_up(TEN + 5 * MINUTE, result="failed", type=name, endpoint=name)
    failed(TEN + 5 * MINUTE, "aaaa", exception=name, type=name)
    for asked in ({"type": name}, {"endpoint": name}):
        text = page(**asked)
        pressed = drawn(text)["messages"].replace("SINCE", "2026-11-14T10:05Z").replace("UNTIL", "2026-11-14T10:06Z")
        assert len(found_in_archive(archived, pressed)) == 1
    caused = unescape(matched(r'<a href="([^"]*)">all of this error', page()))
    assert len(found_in_archive(archived, caused)) == 1


@pytest.mark.parametrize("name", ["HUSBAND.Sales", "SINCERE", "UNTILLED"])
def test_a_name_that_looks_like_what_a_drawing_fills_in_stays_whole(page: Page, database: None, name: str) -> None:
    """A chart replaces the first SINCE and UNTIL in the address; a cell replaces BAND before that."""
    text = page(endpoint=name, m="delivery", table="heat")
    cell = json.loads(unescape(matched(r'data-heat="([^"]*)"', text)))["cell"]
    data = drawn(text)
    for pattern in (data["messages"], data["pruned"], data["finished"], cell.replace("BAND", "7", 1)):
        pressed = pattern.replace("SINCE", "from", 1).replace("UNTIL", "to", 1)
        asked = parse_qs(urlsplit(pressed).query)
        if terms := asked.get("q"):
            assert {"since:from", "until:to", f"endpoint:={name}"} < set(terms[0].split())
        else:
            assert (asked["since"], asked["until"], asked["endpoint"]) == (["from"], ["to"], [name])
        assert asked.get("band", ["7"]) == ["7"]


@pytest.fixture
def database(console_database: str) -> None:
    for name in ("HUSBAND.Sales", "SINCERE", "UNTILLED"):
        rolled_up(TEN + 5 * MINUTE, 2, {9: 2}, endpoint=name)


def test_a_time_of_which_the_archive_is_pruned_leads_to_history(
    page: Page, console_database: str, pruned: Pruned
) -> None:
    rolled_up(TEN + 5 * MINUTE, 41, result="failed", queue=BILLING)
    pruned(DAY)
    for text in (page(queue=BILLING), page(queue=BILLING, table="heat", m="delivery")):
        assert drawn(text)["kept_from"] > drawn(text)["at"][-1]
        assert 'href="/archive/?q=result' not in text
    address = unescape(matched(r'<a href="(/trends/messages/[^"]*)">\s*(?:<[^>]*>)*41', page(queue=BILLING)))
    asked = {"since": ["2026-11-14T10:05:00Z"], "until": ["2026-11-14T10:06:00Z"], "queue": [BILLING]}
    assert parse_qs(urlsplit(address).query) == {**asked, "result": ["unsuccessful"]}
    pruned(-DAY)
    assert "/archive/?q=result" in page(queue=BILLING)


@pytest.mark.parametrize("asked", ["Shop." + "T" * 195, "Shop." + "T" * 995])
def test_a_name_too_long_for_figures_leads_to_its_messages_all_the_same(
    page: Page, history: Path, as_viewer: Client, asked: str
) -> None:
    """Figures keep the beginning of a name, files the whole, and the archive's search matches whole names only."""
    rolled_up(TEN + 5 * MINUTE, 1, {9: 1}, type="Shop." + "T" * 195)
    rolled_up(TEN + 5 * MINUTE, 2, result="failed", type="Shop." + "T" * 195)
    for seq, result in enumerate(("success", "failed", "failed"), 1):
        write(history, message(seq, TEN + 5.5 * MINUTE, result=result, type="Shop." + "T" * 995, delivery_ms=0))
    text = page(type=asked, m="delivery")
    assert (drawn(text)["succeeded"][5], drawn(text)["failed"][5]) == (1, 2)
    assert "stands for all longer than 800 bytes" in text
    assert "/archive/" not in drawn(text)["messages"]
    (finished,) = set(re.findall(r'<a href="(/trends/messages/[^"]*result=success[^"]*)"', text))
    (died,) = set(re.findall(r'<a href="(/trends/messages/[^"]*result=unsuccessful[^"]*)"', text))
    for address, seqs in ((finished, [True, False, False]), (died, [False, True, True])):
        listed = as_viewer.get(unescape(address)).content.decode()
        assert [f"/trends/messages/{seq}/" in listed for seq in (1, 2, 3)] == seqs
        assert "stands for all longer than 800 bytes" in listed


def test_value_too_long_to_search_is_no_link(page: Page, console_database: str) -> None:
    """An error and an id of which figures keep only the beginning."""
    failed(TEN + MINUTE, "aaaa", exception="E" * 200)
    rolled_up(TEN + MINUTE, result="failed")
    told("m" * 200, TEN + MINUTE, failed=1, last_failed_at=TEN + MINUTE)
    text = page()
    assert "all of this error" not in text
    assert "fingerprint=aaaa" in text
    assert "m" * 200 not in text
    assert "too long to be looked for" in text


def test_history_shows_exactly_what_a_failed_step_counts(page: Page, history: Path, as_viewer: Client) -> None:
    results = ("success", "failed", "rejected", "lock_expired")
    write(history, *(message(seq, TEN, result=result) for seq, result in enumerate(results, 1)))
    write(history, message(9, TEN))
    listed = as_viewer.get("/trends/messages/", {**ASKED, "result": "unsuccessful"}).content.decode()
    assert '<option value="unsuccessful" selected>Not succeeded</option>' in listed
    assert [f"/trends/messages/{seq}/" in listed for seq in (1, 2, 3, 4, 9)] == [False, True, True, True, False]


def test_failure_links_to_its_own_messages(page: Page, history: Path, as_viewer: Client) -> None:
    """Other failures have the same error: the archive finds these messages by its name, history by the fingerprint."""
    failed(TEN + MINUTE, "aaaa", 1)
    failed(TEN + MINUTE, "bbbb", 1)
    rolled_up(TEN + MINUTE, 2, result="failed")
    kept = {"result": "failed", "exception_type": "Shop.Refused"}
    for seq, fingerprint in ((1, "aaaa"), (2, "bbbb")):
        write(history, message(seq, TEN + MINUTE, fingerprint=fingerprint, **kept))
    write(history, message(3, TEN + MINUTE))
    address = unescape(matched(r'<a href="(/trends/messages/[^"]*fingerprint=bbbb)">', page()))
    listed = as_viewer.get(address).content.decode()
    assert [f"/trends/messages/{seq}/" in listed for seq in (1, 2, 3)] == [False, True, False]
    assert "<code>bbbb</code>" in listed
    assert 'name="fingerprint" value="bbbb"' in listed
    every = unescape(matched(r'href="([^"]*)">Show every failure', listed))
    assert b"/trends/messages/1/" in as_viewer.get(f"/trends/messages/{every}").content


def test_error_links_to_the_archive_until_it_is_pruned(page: Page, console_database: str, pruned: Pruned) -> None:
    failed(TEN + MINUTE, "aaaa", 1)
    rolled_up(TEN + MINUTE, result="failed")
    assert "all of this error" in page()
    pruned(DAY)
    assert "all of this error" not in page()
