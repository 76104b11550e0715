"""The archive as a file: exactly a search's matches, limited by rights, with a last line that says if it is whole."""

import asyncio
import csv
import io
import json
import threading
from collections.abc import Mapping
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.handlers.asgi import ASGIHandler
from django.test import Client

from pgqueue_admin.archive import export_reader, text_search
from pgqueue_admin.console.archive import export, export_views
from pgqueue_admin.dialects.errors import Busy, DatabaseDown
from pgqueue_admin.models import AuditEntry, MaskingReveal, MaskingRule, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.audit_exports import NOT_ENDED
from pgqueue_admin.services.content_access import REFUSED
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.masking.headers import HIDDEN
from tests.console.pages import Answer
from tests.console.recorded import Recorded
from tests.databases import Databases
from tests.hostile.proxy import Proxy

FORMULA = '=HYPERLINK("http://example.com")\r\n,"ß'


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each file take several reads."""
    monkeypatch.setattr(export_reader, "ROWS", 40)
    monkeypatch.setattr(text_search, "ROWS", 100)
    monkeypatch.setattr(text_search, "FIRST", 60)


def asked(client: Client, q: str, format: str = "jsonl", **more: Any) -> Any:
    answer = client.post("/archive/export/", {"q": q, "format": format, **more})
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="archive.{format}"'
    return answer


def text_of(answer: Any) -> str:
    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    try:
        return async_to_sync(read)().decode()
    finally:
        answer.close()


def records(client: Client, q: str, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    first, *found, last = map(json.loads, text_of(asked(client, q, **more)).splitlines())
    return first, found, last


def rows(client: Client, q: str, **more: Any) -> tuple[list[str], list[dict[str, str]], str]:
    heads, *found, last = csv.reader(io.StringIO(text_of(asked(client, q, "csv", **more)), newline=""))
    assert len(last) == 1
    return heads, [dict(zip(heads, row, strict=True)) for row in found], last[0]


def of_database(looked_at: Recorded, where: str) -> list[int]:
    found = looked_at.connection.all(
        f"select id from messages.message_archive a where {where} order by died_at desc, seq desc"
    )
    return [row.id for row in found]


@pytest.mark.parametrize(
    ("q", "where"),
    [
        ("", "true"),
        ("state:dead", "state = 'dead'"),
        ("type:ChargeCard OR queue:Sales", "message_type ~ '[.+]ChargeCard$' or queue = '\"public\".\"Sales\"'"),
        ("body:OrderId", "position('OrderId'::bytea in body) > 0"),
        ("state:retried", "state = 'retried'"),
    ],
)
def test_the_file_is_what_the_search_finds_also_beyond_its_first_window(
    looked_at: Recorded, q: str, where: str
) -> None:
    meant = of_database(looked_at, where)
    assert len(meant) > 100 or q == "state:retried"
    first, found, last = records(looked_at.operator, q)
    assert [each["archive_id"] for each in found] == meant
    assert (first["export"], first["who"], first["q"], first["left_out"]) == ("begun", "ana", q, {})
    assert last == {"export": "ended", "whole": True, "messages": len(meant), "why": ""}


def test_csv_has_the_same_and_its_last_row_says_that_it_is_whole(looked_at: Recorded) -> None:
    _, found, _ = records(looked_at.operator, "state:dead")
    heads, cells, last = rows(looked_at.operator, "state:dead")
    assert heads == list(export.COLUMNS)
    assert [int(each["archive_id"]) for each in cells] == [each["archive_id"] for each in found]
    assert [each["headers"] for each in cells] == [each["headers"] for each in found]
    assert last == f"# whole: {len(found)} messages"


def test_a_spreadsheet_runs_nothing_of_it_and_json_has_it_as_it_was(looked_at: Recorded) -> None:
    id = of_database(looked_at, "state = 'dead'")[-1]
    looked_at.connection.run(
        "update messages.message_archive set exception_message = %(text)s, endpoint = '+1', machine = E'\\t2',"
        " message_type = '@SUM(A1)', died_at = 'infinity' where id = %(id)s",
        {"text": FORMULA, "id": id},
    )
    _, (cell,), _ = rows(looked_at.operator, 'type:="@SUM(A1)"')
    names = ("error_message", "endpoint", "host", "type")
    assert [cell[each][:2] for each in names] == ["'=", "'+", "'\t", "'@"]
    _, (said,), _ = records(looked_at.operator, 'type:="@SUM(A1)"')
    assert [said[each] for each in (*names, "died_at")] == [FORMULA, "+1", "\t2", "@SUM(A1)", "infinity"]


def test_export_without_the_read_right_names_the_columns_left_out(looked_at: Recorded) -> None:
    exporter = looked_at.signed_in("uma", Permission.objects.filter(codename="change_settings"))
    first, found, last = records(exporter, "state:dead")
    assert first["left_out"].keys() == {"error_message", "error_message_length", "headers", "headers_length"}
    assert first["why"] == REFUSED
    assert last["whole"] is True
    assert {each["error_message"] for each in found} == {None}
    assert any(HIDDEN in each["headers"] for each in found)
    assert all(each["type"] for each in found)
    heads, _, _ = rows(exporter, "state:dead")
    assert "error_message (left out)" in heads
    answer = exporter.post("/archive/export/", {"q": "body:OrderId"}, follow=True)
    assert f"body:OrderId: {REFUSED}" in unescape(answer.content.decode())


def entry() -> AuditEntry:
    newest = AuditEntry.objects.first()
    assert newest is not None
    return newest


def test_export_is_audited(looked_at: Recorded) -> None:
    _, found, _ = records(looked_at.operator, "state:dead")
    written = entry()
    about = (written.who, written.verb, written.noun, written.subject, written.count)
    assert about == ("ana", "export", "archive", "state:dead", len(found))
    assert written.after == {"format": "jsonl", "ended": "whole"}
    page = looked_at.operator.get("/audit/?q=did:exported").content.decode()
    assert f"exported {len(found)} messages of the archive: state:dead" in page
    assert 'href="/archive/?q=state%3Adead"' in page


def test_the_entry_of_a_long_search_is_that_search(looked_at: Recorded) -> None:
    q = f"state:dead body:{'x' * 390} type:Shop.PlaceOrder"
    asked(looked_at.operator, q).close()
    written = entry()
    assert len(q) > len(written.subject) == 400
    assert written.subject.endswith("x…")  # without the ellipsis it would seem complete
    assert (written.after or {})["q"] == q
    page = looked_at.operator.get("/audit/?q=did:exported").content.decode()
    assert f'href="/archive/?{urlencode({"q": q})}"' in page


def test_viewer_exports_nothing(looked_at: Recorded) -> None:
    page = looked_at.viewer.get("/archive/").content.decode()
    assert "needs the right" in page.split('id="export"')[1]
    before = AuditEntry.objects.count()
    answer: Answer = looked_at.viewer.post("/archive/export/", {"q": ""}, follow=True)
    assert "Nothing was exported: it needs the right" in answer.content.decode()
    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("q", ["age:>1hh", "state:undead", f"state:{'x' * 5_000}"])
def test_a_search_that_is_none_exports_nothing(looked_at: Recorded, q: str) -> None:
    answer: Answer = looked_at.operator.post("/archive/export/", {"q": q}, follow=True)
    assert "Nothing was exported: " + q.replace(">", "&gt;") in answer.content.decode()


def test_a_reader_who_goes_leaves_no_last_line_and_an_entry_that_says_so(looked_at: Recorded) -> None:
    answer = asked(looked_at.operator, "")
    assert entry().after == {"format": "jsonl", "ended": NOT_ENDED}
    answer.close()
    written = entry()
    assert (written.count, written.after) == (40, {"format": "jsonl", "ended": "the connection was lost"})
    assert asked(looked_at.operator, "").close() is None, "and the next one may begin"


@pytest.mark.parametrize("q", ["", "body:nowhere"])
def test_a_browser_that_goes_in_the_middle_ends_it(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, q: str
) -> None:
    """Through the handler that the web server calls; also while nothing matches, so nothing is sent."""
    reads, third = counted_reads(monkeypatch, 3)
    body, sent = left_meanwhile(looked_at, q, third)
    assert body.startswith(b"archive_id,")
    assert b"# whole" not in body
    assert not any(each["type"] == "http.response.body" and not each.get("more_body") for each in sent), "not ended"
    assert entry().after == {"format": "csv", "ended": "the connection was lost"}
    left_at = len(reads)
    reads.clear()
    text_of(asked(looked_at.operator, q))
    assert left_at < len(reads) / 2, "it did not read on"


def test_a_browser_that_goes_before_the_first_piece_leaves_its_owner_free(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = counted_reads(monkeypatch, 1)
    assert left_meanwhile(looked_at, "", first) == (b"", [])
    assert (entry().after or {})["ended"] in (NOT_ENDED, "the connection was lost")
    asked(looked_at.operator, "").close()


def counted_reads(monkeypatch: pytest.MonkeyPatch, number: int) -> tuple[list[int], threading.Event]:
    """Count reads; the event is set when read ``number`` starts."""
    read, reads, at = export_views.ArchiveExport._read, list[int](), threading.Event()

    def counted(self: export_views.ArchiveExport) -> Any:
        reads.append(1)
        if len(reads) == number:
            at.set()
        return read(self)

    monkeypatch.setattr(export_views.ArchiveExport, "_read", counted)
    monkeypatch.setattr(text_search, "ROWS", 10)
    return reads, at


def left_meanwhile(looked_at: Recorded, q: str, at: threading.Event) -> tuple[bytes, list[Mapping[str, Any]]]:
    token = looked_at.operator.get("/archive/").cookies[settings.CSRF_COOKIE_NAME].value
    cookies = "; ".join(f"{name}={each.value}" for name, each in looked_at.operator.cookies.items())
    headers = {"host": "testserver", "cookie": cookies, "x-csrftoken": token}
    headers["content-type"] = "application/x-www-form-urlencoded"
    scope = {
        "type": "http", "method": "POST", "path": "/archive/export/", "query_string": b"", "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent = list[Mapping[str, Any]]()

    async def served() -> None:
        requests = [{"type": "http.request", "body": f"q={q}".encode()}]

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            await asyncio.to_thread(at.wait, 30)
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        await ASGIHandler()(scope, receive, send)

    async_to_sync(served)()
    return b"".join(each.get("body", b"") for each in sent), sent


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_file_that_finds_nothing_for_long_shows_that_it_goes_on(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(export_views, "QUIET", 0.0)
    lines = text_of(asked(looked_at.operator, "body:nowhere", format)).splitlines()
    assert len(lines) > 4
    if format == "csv":
        assert set(lines[1:-1]) == {""}
        assert lines[-1] == "# whole: 0 messages"
    else:
        assert {json.loads(each)["export"] for each in lines[1:-1]} == {"reading"}
        assert json.loads(lines[-1])["whole"] is True


def test_a_person_has_one_at_a_time(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgqueue_admin.models.session_shares.WAIT_SECONDS", 0.01)
    running = asked(looked_at.operator, "")
    refused: Answer = looked_at.operator.post("/archive/export/", {"q": ""}, follow=True)
    assert "Another export of yours is still being read." in refused.content.decode()
    asked(looked_at.second, "").close()
    assert text_of(running).endswith('"why": ""}\n')


def test_the_database_gone_in_the_middle_is_the_last_line(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    running = asked(looked_at.operator, "", "csv")

    def gone(*_: Any, **__: Any) -> Any:
        raise DatabaseDown("connection refused")

    monkeypatch.setattr(type(queue_database()), "read_session", gone)
    last = text_of(running).splitlines()[-1]
    assert last.startswith('"# NOT WHOLE: 40 messages, and perhaps more. The database')
    assert entry().after["ended"].startswith("The database")  # type: ignore[index]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_the_consoles_database_gone_in_the_middle_is_the_last_line(
    looked_at: Recorded, databases: Databases, format: str
) -> None:
    """The turn to search texts is kept there; the messages come from the queue database."""
    wire = Proxy(looked_at.dsn)
    with databases.as_django(wire.dsn, ("default",)):
        running = asked(looked_at.operator, "body:OrderId", format)
        with wire.down():
            last = text_of(running).splitlines()[-1]
    why = "The console's database does not answer."
    assert why in last
    assert "NOT WHOLE" in last if format == "csv" else json.loads(last)["whole"] is False
    assert entry().after == {"format": format, "ended": NOT_ENDED}, "nobody could say more there"
    assert text_of(asked(looked_at.operator, "body:OrderId", "csv")).splitlines()[-1].startswith("# whole")


def test_export_waits_for_the_persons_other_search(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    read, turns = export_views.ArchiveExport._read, list[int]()

    def busy_at_first(self: export_views.ArchiveExport) -> Any:
        turns.append(1)
        if len(turns) == 2:
            raise Busy("another search")
        return read(self)

    monkeypatch.setattr(export_views.ArchiveExport, "_read", busy_at_first)
    assert records(looked_at.operator, "")[2]["whole"] is True


def test_a_last_read_that_was_cut_is_not_whole(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    number = len(of_database(looked_at, "true"))
    for most, is_whole in ((number - 1, False), (number, True)):
        monkeypatch.setattr(export_views, "MOST", most)
        _, found, last = records(looked_at.operator, "")
        assert (last["whole"], last["messages"], len(found)) == (is_whole, most, most)


@pytest.mark.parametrize(("name", "most", "why"), [("MOST", 60, "at 60 messages"), ("SECONDS", 0.0, "after 0 s")])
def test_export_at_its_limits_says_that_it_is_not_whole(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, name: str, most: Any, why: str
) -> None:
    monkeypatch.setattr(export_views, name, most)
    _, found, last = records(looked_at.operator, "")
    assert (last["whole"], last["messages"]) == (False, len(found))
    assert len(found) == (60 if name == "MOST" else 40)
    assert why in last["why"]


@pytest.mark.parametrize("too_many", [0, 1])
def test_a_last_read_that_is_cut_leaves_no_whole_file(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, too_many: int
) -> None:
    most = len(of_database(looked_at, "state = 'dead'")) - too_many
    monkeypatch.setattr(export_views, "MOST", most)
    _, found, last = records(looked_at.operator, "state:dead")
    assert (len(found), last["messages"], last["whole"]) == (most, most, not too_many)


@pytest.mark.parametrize("hide", [reveals.end, None], ids=["by hand", "by time"])
def test_export_ends_when_its_reveal_ends(looked_at: Recorded, hide: Any) -> None:
    person = User.objects.get(pk=looked_at.operator.session["_auth_user_id"])
    rule = MaskingRule.objects.create(name="Card", kind="header", pattern="Shop.*")
    try:
        reveals.begin(person, "a customer calls", "/archive/", "console")
        answer = asked(looked_at.operator, "")
        if hide:
            hide(person, "/archive/", "console")
        else:
            MaskingReveal.objects.update(ends_at=database_clock.now())
        last = json.loads(text_of(answer).splitlines()[-1])
    finally:
        rule.delete()
    assert not last["whole"]
    assert last["why"] == "What had been revealed is hidden again."
