"""The archive's page: search, coverage, paging and acts (C4)."""

import re
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import Excluded, Term
from pgqueue_admin.console.archive import search
from pgqueue_admin.models import queue_database
from pgqueue_admin.services.content_access import ALL
from tests.console.pages import Connect
from tests.console.recorded import REFUSED, Recorded


def page(client: Client, **query: str) -> str:
    response = client.get("/archive/", query)
    assert response.status_code == 200
    return response.content.decode()


def ids(html: str) -> list[str]:
    return re.findall(r'name="id" value="(\d+)"', html)


@pytest.mark.parametrize(
    ("typed", "filter"),
    [
        (None, ArchiveFilter(state="dead")),
        ("", ArchiveFilter(state="")),
        ("type:ChargeCard state:retried", ArchiveFilter(state="retried", type="ChargeCard")),
        (
            'error:Timeout message:"card declined"',
            ArchiveFilter(state="", exception="Timeout", words=("card declined",)),
        ),
        (
            'body:2026-121009 body:"two words" headers:ravenhill',
            ArchiveFilter(state="", bodies=("2026-121009", "two words"), headers=("ravenhill",)),
        ),
        ("vat number", ArchiveFilter(state="", also=(Term("", "vat"), Term("", "number")))),
        ("-type:Pay", ArchiveFilter(state="", also=(Excluded(Term("type", "Pay")),))),
        ("header.Tenant:x", ArchiveFilter(state="", also=(Term("header", "x", path=("Tenant",)),))),
        (
            "op:418 result:failed kind:transport",
            ArchiveFilter(state="", operation=418, result="failed", kind="transport"),
        ),
        (
            "id:2f048cd1-637d-4c08 endpoint:Billing",
            ArchiveFilter(state="", message_id="2f048cd1-637d-4c08", endpoint="Billing"),
        ),
        ("error:=Shop.Boom type:Msg*", ArchiveFilter(state="", exception_is="Shop.Boom", type_from="Msg")),
        ('error:="say ""hi"" *" type:="=x"', ArchiveFilter(state="", exception_is='say "hi" *', type_is="=x")),
        ('error:"two words"* type:"Boom*"', ArchiveFilter(state="", exception_from="two words", type="Boom*")),
        ('error:="" result:failed', ArchiveFilter(state="", exception_is="", result="failed")),
        ("op:5/last state:discarded", ArchiveFilter(state="discarded", last_operation=5)),
        ("endpoint:=Billing id:=12", ArchiveFilter(state="", endpoint="Billing", message_id="12")),
        ("queue:Billing", ArchiveFilter(state="", queue='"public"."Billing"')),
        ('queue:"Legacy"."Invoicing"', ArchiveFilter(state="", queue='"Legacy"."Invoicing"')),
        ("queue:Legacy.Invoicing", ArchiveFilter(state="", queue='"Legacy"."Invoicing"')),
    ],
)
def test_typed_search_is_read_as_its_filter(looked_at: Recorded, typed: str | None, filter: ArchiveFilter) -> None:
    query = search.read(typed, ALL)
    assert query.error is None
    assert query.filter == filter


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("age:>1hh", "age:>1hh"),
        ("state:undead", "state:undead"),
        ("type: ChargeCard", "type:"),
        ("-type:", "type:"),
        ("a OR", "OR"),
        ("op:x", "op:x"),
        ("op:/last", "op:/last"),
        ("id:12", "id:12"),
        ("header.Tenant:", "header.Tenant:"),
        ("state:dead queue:Billing queue:Sales", "queue:Sales"),
        ("state:dead state:discarded", "state:discarded"),
        ("error:Boom error:=Boom", "error:=Boom"),
        ("error:= Boom", "error:="),
        ("error:*", "error:*"),
        ('type:""', 'type:""'),
        ("endpoint:= Billing", "endpoint:="),
        ('"', '"'),
        ("-", "-"),
    ],
)
def test_a_wrong_term_is_named_and_nothing_runs(looked_at: Recorded, typed: str, wrong: str) -> None:
    error = search.read(typed, ALL).error
    assert error is not None
    assert error.wrong == wrong
    html = page(looked_at.operator, q=typed)
    assert 'id="aqe"' in html
    assert "Nothing was searched." in html
    assert not ids(html)


def test_where_a_name_found_nothing_it_is_said_that_names_are_whole(looked_at: Recorded) -> None:
    whole_names = "take whole names"
    assert whole_names in page(looked_at.operator, q="state:dead error:RefusedExc")
    assert whole_names in page(looked_at.operator, q="queue:billing")
    assert whole_names not in page(looked_at.operator, q="nobody ever wrote this")
    assert ids(page(looked_at.operator, q="error:PaymentGateway+RefusedException"))


def test_dead_first_with_coverage(looked_at: Recorded) -> None:
    html = page(looked_at.operator)
    assert ids(html) == [str(each) for each in looked_at.dead(50)]
    assert "Searched the whole archive." in html
    assert "state:dead" in html


def test_a_search_by_error_finds_those_only(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q="error:RefusedException state:dead")
    assert ids(html) == [str(each) for each in looked_at.dead(50, exception=REFUSED)]


def test_words_say_that_rows_are_read(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q="insufficient funds")
    assert "read row by row" in html
    assert "in all texts" in html


def test_a_body_is_found_by_what_is_in_it_and_the_line_says_what_was_read(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q="state:dead body:OrderId headers:shop.messages")
    assert ids(html)
    said = " ".join(html.split())
    assert "“shop.messages” in headers and “OrderId” in bodies, read row by row; ids were not searched." in said
    assert "bodies and ids were not searched" in " ".join(
        page(looked_at.operator, q="headers:nothing-has-this").split()
    )


def test_words_that_no_error_has_are_offered_as_a_search_of_bodies(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q='state:dead message:"order 4711"')
    assert f"""href="?q={quote('state:dead body:"order 4711"')}\"""" in html


def test_no_match_says_what_was_searched(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q="queue:Nowhere")
    assert "No match in the archive" in html
    assert "&quot;public&quot;.&quot;Nowhere&quot;" in html


def test_pages_follow_each_other_without_loss(looked_at: Recorded) -> None:
    seen, address = [], "/archive/"
    while address:
        html = looked_at.operator.get(address).content.decode()
        seen += ids(html)
        following = re.search(r'rel="next" href="([^"]+)"', html)
        address = "/archive/" + following[1].replace("&amp;", "&") if following else ""
    assert seen == [str(each) for each in looked_at.dead(1000)]


@pytest.mark.parametrize("cursor", ["nonsense", "WzFd", "eyJhIjoxfQ", "WyIyMDI2IiwgMV0"])
def test_a_bad_cursor_is_the_first_page(looked_at: Recorded, cursor: str) -> None:
    assert ids(page(looked_at.operator, after=cursor)) == [str(each) for each in looked_at.dead(50)]


def test_a_row_has_its_message_id_to_copy(looked_at: Recorded) -> None:
    rows = page(looked_at.operator, q="state:dead").partition("<tbody>")[2].partition("</tbody>")[0]
    assert rows.count('class="copy"') == rows.count("<tr ")


def test_hostile_errors_are_text(looked_at: Recorded) -> None:
    for q in ("", "onerror", "state:dead error:FormatException"):
        html = page(looked_at.operator, q=q)
        assert "<script>alert" not in html
        assert "onerror=alert(1)>" not in html.replace("&gt;", "")
        assert "\u202e" not in html


def test_the_typed_text_is_text(looked_at: Recorded) -> None:
    html = page(looked_at.operator, q='"><script>alert(1)</script>')
    assert "<script>alert(1)" not in html


def test_a_viewer_sees_why_acts_do_not_work(looked_at: Recorded) -> None:
    html = page(looked_at.viewer)
    assert 'name="act"' not in html
    assert "needs the right “Can retry dead messages”, which an administrator gives in Django admin" in html


def test_without_our_tables_the_command_is_named(recorded: Recorded) -> None:
    recorded.connection.run("drop schema messages cascade")
    html = page(recorded.operator)
    assert "manage.py engine_schema" in html


def test_a_slow_search_keeps_its_words(
    recorded: Recorded, connect: Connect, recorded_console: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(queue_database._READS, "statement_timeout", 1.0)
    queue_database.close()
    blocker = connect(recorded_console)
    with blocker.transaction():
        blocker.run("lock table messages.message_archive in access exclusive mode")
        html = page(recorded.operator, q="insufficient")
    assert "lock" in html[html.index('class="notice') :], html[html.index('class="notice') :][:600]
    assert 'value="insufficient"' in html


def test_no_page_has_inline_style_or_script(looked_at: Recorded) -> None:
    html = page(looked_at.operator)
    assert " style=" not in html
    assert not re.search(r"<script(?![^>]+src=)", html)


def test_the_page_says_what_is_removed(looked_at: Recorded, settings: Any) -> None:
    client = looked_at.operator
    assert "Nothing is removed from the archive by itself." in page(client)
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    assert "What was decided more than 30 days ago is removed from the archive; what is dead stays." in page(client)


def test_a_search_takes_twenty_words_at_most(recorded: Recorded) -> None:
    """Each word is searched in each message: a pasted stack trace would keep the database busy."""
    most = " ".join(f"word{number}" for number in range(search.MOST_WORDS))
    assert search.read(most, ALL).error is None
    said = page(recorded.operator, q=f"{most} more")
    assert "21 words" in said
    assert "at most 20" in said


def test_unreadable_row_hides_no_other(recorded: Recorded) -> None:
    """A label of the enum is missing, as after catalog damage: the server refuses to show that value."""
    look = recorded.connection
    insert = """insert into messages.message_archive
        (created_at, message, result, handled_by, kind, queue, exception_message)
        values (now(), '{}', %s, 'test', 'transport', 'q', 'of three') returning id"""
    whole, damaged, last = (look.value(insert, [result]) for result in ("failed", "rejected", "failed"))
    look.run("set allow_system_table_mods = on")
    look.run("delete from pg_catalog.pg_enum where enumlabel = 'rejected'")
    html = page(recorded.operator, q='message:"of three"')
    assert ids(html) == [str(each) for each in (last, damaged, whole)]
    assert "unreadable" in html
    assert "This row cannot be read: invalid internal value for enum" in html
