"""A text search on its page: its coverage, how it continues, what acts take of it, and one at a time per user."""

import contextlib
import re
import threading
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections

from pgqueue_admin.archive import text_index, text_search
from pgqueue_admin.archive.export_reader import ArchiveWalk
from pgqueue_admin.console import pagination
from pgqueue_admin.console.archive import export, search
from pgqueue_admin.console.archive.export_views import ArchiveExport
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import Busy
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation, session_shares
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database
from pgqueue_admin.services import content_access
from tests.console.recorded import Recorded
from tests.waiting import PATIENCE

Q = "body:OrderId"


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "ROWS", 100)
    monkeypatch.setattr(text_search, "FIRST", 60)


def page(recorded: Recorded, address: str) -> str:
    response = recorded.operator.get(address)
    assert response.status_code == 200
    return response.content.decode()


def line(html: str) -> str:
    covered = html.split('<p class="covered">')[1].split("</p>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", covered)).split()).replace("\N{NO-BREAK SPACE}", " ")


def ids(html: str) -> list[int]:
    return [int(each) for each in re.findall(r'name="id" value="(\d+)"', html)]


def following(html: str) -> str:
    found = re.search(r'href="(\?q=[^"]*from=[^"]*)">Search the next', html)
    return "/archive/" + unescape(found[1]) if found else ""


def with_body(recorded: Recorded, text: str = "OrderId") -> list[int]:
    rows = recorded.connection.all(
        "select id from messages.message_archive where position(%(text)s::bytea in body) > 0", {"text": text.encode()}
    )
    return [row.id for row in rows]


def test_where_all_was_read_the_line_says_so(recorded: Recorded) -> None:
    html = page(recorded, f"/archive/?q={Q}")
    assert "That part of every archived message was read." in line(html)
    assert "the whole archive" not in line(html)  # error messages, headers and ids were not read
    assert f"{len(with_body(recorded)):,} match." in line(html)
    assert not following(html)


def test_the_line_says_what_was_covered_and_the_search_goes_on(recorded: Recorded, windows: None) -> None:
    address, found, lines = f"/archive/?q={Q}", list[int](), list[str]()
    while address:
        html = page(recorded, address)
        lines.append(line(html))
        address, here = following(html), html
        while here:
            found += ids(here)
            older = re.search(r'rel="next" href="([^"]+)"', here)
            here = page(recorded, "/archive/" + unescape(older[1])) if older else ""
    assert "match so far." in lines[0]
    assert "match in this part." in lines[1]
    assert "Searched the newest 100 dead, back to" in lines[0]
    assert "others" in lines[0]
    assert "Search the next 100" in lines[0]
    assert "the next 100 dead, from" in lines[1]
    assert sorted(found) == sorted(with_body(recorded))


def test_nothing_found_in_a_part_is_not_called_no_match(recorded: Recorded, windows: None) -> None:
    html = page(recorded, "/archive/?q=body:nobody-wrote-this")
    assert "None so far." in line(html)
    assert "No match in what was searched" in html
    assert following(html)


def test_an_operation_takes_what_was_covered_and_names_it(recorded: Recorded, windows: None) -> None:
    html = page(recorded, f"/archive/?q={Q}")
    covered = re.search(r'name="w" value="([^"]+)"', html)
    assert covered
    assert "found" in html.split("data-matching")[1].split("</label>")[0]
    posted = {"act": "retry", "all": "matching", "q": Q, "w": covered[1]}
    response = recorded.operator.post("/operations/", posted)
    operation = Operation.objects.get(pk=int(response["Location"].strip("/").split("/")[-1]))
    frozen = recorded.connection.all(
        "select archive_id from messages.operation_item where operation = %s", [operation.pk]
    )
    newest = recorded.connection.all(
        "select id from messages.message_archive where state = 'dead' order by died_at desc, seq desc limit 100"
    )
    assert {row.archive_id for row in frozen} == {row.id for row in newest} & set(with_body(recorded))
    assert operation.selection.startswith(f"{Q} died:>=")
    shown = page(recorded, response["Location"])
    assert "died:&gt;=" in shown


def test_a_filter_without_texts_needs_no_window(recorded: Recorded) -> None:
    response = recorded.operator.post("/operations/", {"act": "retry", "all": "matching", "q": "state:dead -type:Ping"})
    assert re.fullmatch(r"/operations/\d+/", response["Location"])


@pytest.mark.parametrize("w", ["", "nonsense", pagination.pack("all"), pagination.pack(["all", ["now", 1], None])])
def test_an_operation_on_texts_that_were_not_searched_is_refused(recorded: Recorded, w: str) -> None:
    posted = {"act": "discard", "all": "matching", "q": Q, "w": w}
    response = recorded.operator.post("/operations/", posted, follow=True)
    assert "Nothing was discarded: this search reads texts, and what it has covered is not known." in unescape(
        response.content.decode()
    )
    assert not Operation.objects.exists()


IMPOSSIBLE = pagination.pack(["all", ["2026-99-99 99:99:99+00", 1], None])


@pytest.mark.parametrize("w", ["nonsense", pagination.pack(["all", ["now", 1], None]), IMPOSSIBLE])
def test_a_window_or_a_start_that_is_none_breaks_no_page(recorded: Recorded, w: str) -> None:
    for name in ("w", "from"):
        page(recorded, f"/archive/?q={Q}&{name}={w}")


def test_a_person_has_one_search_of_texts_at_a_time(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused with that reason; the user's other pages and other users' searches go on."""
    monkeypatch.setattr(session_shares, "WAIT_SECONDS", 0.1)
    holds, ends = threading.Event(), threading.Event()
    person = int(recorded.operator.session["_auth_user_id"])
    viewer = recorded.viewer

    def hold() -> None:
        session_shares.person.set(person)
        with queue_database().read_session(searching=True):
            holds.set()
            ends.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert holds.wait(10)
        html = page(recorded, f"/archive/?q={Q}")
        assert "Another search of yours still reads texts" in html
        assert not ids(html)
        assert ids(page(recorded, "/archive/?q=state:dead"))
        assert ids(viewer.get("/archive/", {"q": Q}).content.decode())
    finally:
        ends.set()
        holder.join()
    assert ids(page(recorded, f"/archive/?q={Q}"))


def test_a_search_in_another_web_process_is_waited_for_likewise(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has its own limits: both coordinate in the console's database."""
    monkeypatch.setattr(session_shares, "WAIT_SECONDS", 0.1)
    holds, ends = threading.Event(), threading.Event()
    person = int(recorded.operator.session["_auth_user_id"])
    other = queue_database_of_another_process()

    def hold() -> None:
        session_shares.person.set(person)
        with other.read_session(searching=True):
            holds.set()
            ends.wait(30)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert holds.wait(10)
        html = page(recorded, f"/archive/?q={Q}")
        assert "Another search of yours still reads texts" in html
        assert "search again then" in html
        assert ids(recorded.viewer.get("/archive/", {"q": Q}).content.decode())
        assert ids(page(recorded, "/archive/?q=state:dead"))
    finally:
        ends.set()
        holder.join()
    assert ids(page(recorded, f"/archive/?q={Q}"))


def test_an_export_that_reads_texts_for_minutes_lets_its_person_search(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, ends, searches = threading.Event(), threading.Event(), 0

    def read(walk: ArchiveWalk, connection: Connection) -> list[Any]:
        reads.set()
        ends.wait(0.4)  # the duration of one window of a text search
        return []

    monkeypatch.setattr(ArchiveWalk, "read", read)
    person = User.objects.get(pk=int(recorded.operator.session["_auth_user_id"]))
    pieces = ArchiveExport(person, search.read(Q, content_access.ALL), export.CsvFile(content_access.ALL, []))

    def export_on() -> None:
        for _ in pieces.pieces():
            if ends.is_set():
                break
        connections.close_all()

    exporter = threading.Thread(target=export_on)
    exporter.start()
    before = session_shares.person.set(person.pk)
    try:
        assert reads.wait(PATIENCE)
        for database in (queue_database(), queue_database_of_another_process()) * 2:
            with contextlib.suppress(Busy), database.read_session(searching=True):
                searches += 1
    finally:
        session_shares.person.reset(before)
        ends.set()
        exporter.join()
    assert searches >= 3


def queue_database_of_another_process() -> QueueDatabase:
    mine = queue_database()
    return replace(mine, _shares=session_shares.Shares())


def test_search_text_is_escaped(recorded: Recorded, windows: None) -> None:
    html = page(recorded, "/archive/?q=%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in html


@pytest.fixture
def indexed(recorded: Recorded) -> None:
    with postgresql().connect(queue_database().dsn) as connection:
        text_index.build(connection)


def test_where_texts_are_indexed_the_line_says_that_all_were_searched(recorded: Recorded, indexed: None) -> None:
    recorded.connection.run("analyze messages.message_archive")
    html = page(recorded, f"/archive/?q={Q}")
    number = recorded.connection.value("select count(*) from messages.message_archive")
    assert "in bodies, by index" in line(html)
    assert f"Searched all ≈ {number:,} by index." in line(html)
    assert f"{len(with_body(recorded)):,} match." in line(html)
    narrowed = line(page(recorded, f"/archive/?q=state:dead type:PlaceOrder {Q}"))
    assert "Searched the whole archive by index." in narrowed
    assert "read row by row" in line(page(recorded, "/archive/?q=body:Id"))  # two letters


def test_further_pages_and_acts_have_what_the_index_found(recorded: Recorded, indexed: None, windows: None) -> None:
    address, found = f"/archive/?q={Q}", list[int]()
    first = page(recorded, address)
    while address:
        html = page(recorded, address)
        assert "by index" in line(html)
        found += ids(html)
        older = re.search(r'rel="next" href="([^"]+)"', html)
        address = "/archive/" + unescape(older[1]) if older else ""
    assert sorted(found) == sorted(with_body(recorded))
    covered = re.search(r'name="w" value="([^"]+)"', first)
    assert covered
    posted = {"act": "discard", "all": "matching", "q": Q, "w": covered[1]}
    response = recorded.operator.post("/operations/", posted)
    operation = Operation.objects.get(pk=int(response["Location"].strip("/").split("/")[-1]))
    frozen = recorded.connection.all(
        "select archive_id from messages.operation_item where operation = %s", [operation.pk]
    )
    dead = recorded.connection.all("select id from messages.message_archive where state = 'dead'")
    assert {row.archive_id for row in frozen} == {row.id for row in dead} & set(with_body(recorded)) != set()
    assert operation.selection == Q


def test_a_page_of_an_index_that_is_gone_searches_anew(recorded: Recorded, indexed: None, windows: None) -> None:
    covered = re.search(r'name="w" value="([^"]+)"', page(recorded, f"/archive/?q={Q}"))
    assert covered
    with postgresql().connect(queue_database().dsn) as connection:
        text_index.drop(connection)
    html = page(recorded, f"/archive/?q={Q}&w={covered[1]}")
    assert "Searched the newest 100 dead" in line(html)
    assert ids(html)


def test_index_search_needs_the_read_right(recorded: Recorded, indexed: None) -> None:
    others = Permission.objects.filter(content_type__app_label="pgqueue").exclude(codename="read_message")
    acts = recorded.signed_in("noor", others)
    covered = pagination.pack(["index", None, None])
    for q in ("OrderId", Q, f"-{Q}", f"state:dead OR {Q}", "header.Tenant:ravenhill"):
        html = acts.get("/archive/", {"q": q, "w": covered}).content.decode()
        assert "Reading what messages say" in unescape(html)
        assert not ids(html)
        posted = {"act": "discard", "all": "matching", "q": q, "w": covered}
        acts.post("/operations/", posted)
    assert not Operation.objects.exists()
