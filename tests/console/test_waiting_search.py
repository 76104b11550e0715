"""Waiting messages are searched by the archive's grammar: in windows from a position, with the coverage shown."""

import json
import re
import uuid
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from pgqueue_admin.console.pagination import pack
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import MaskingRule
from pgqueue_admin.monitor import waiting_search
from tests.console.recorded import Recorded
from tests.console.sampled import sample

IDS = re.compile(r"/messages/([0-9a-f-]{36})/")
SENT = "2026-11-20 10:00:00:000000 Z"


def page(client: Client, table: str = "Sales", **query: str) -> str:
    answer = client.get(f"/queues/public/{table}/messages/", query)
    assert answer.status_code == 200
    return answer.content.decode()


def said(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", html)).replace("\u00a0", " ").split())


def found(client: Client, table: str = "Sales", **query: str) -> list[str]:
    html = page(client, table, **query)
    assert 'id="mqe"' not in html, said(html)
    return list(dict.fromkeys(IDS.findall(html)))


@pytest.fixture(scope="module")
def planted(looked_at: Recorded) -> dict[str, str]:
    """Fill a separate queue; return row ids by name."""
    looked_at.connection.run('create table "Search" (like "Sales" including all)')
    looked_at.connection.run('alter table "Search" alter seq drop identity if exists')
    rows = {
        "order": (_headers("Shop.PlaceOrder, Shop", "m-1", Tenant="raven"), b'{"order": {"no": 4711}, "who": "ana"}'),
        "plus": (_headers("Shop.Outer\\u002BInner", "m-2", sent="2026-11-19 23:59:59:999999 Z"), b"plain zq7 text"),
        "odd": ('{"NServiceBus.TimeSent": "2026-99-99 10:00:00:000000 Z"', b"\xff\xfe"),
        "leap": (_headers("Shop.Ping", "m-4", sent="2026-02-31 10:00:00:000000 Z"), None),
        "expired": (_headers("Shop.Ping", "m-5", sent=SENT), b"x" * 2_000),
    }
    known = {}
    for number, (name, (headers, body)) in enumerate(rows.items(), 1):
        known[name] = str(uuid.uuid4())
        values = {"id": known[name], "headers": headers, "body": body, "seq": number, "old": name == "expired"}
        looked_at.connection.run(
            'insert into "Search" (id, expires, headers, body, seq) values (%(id)s, case when %(old)s then'
            " timestamp '2020-01-01' end, %(headers)s, %(body)s, %(seq)s)",
            values,
        )
    sample()
    return known


def _headers(types: str, id: str, sent: str = SENT, **more: str) -> str:
    given = {f"Shop.{name}": value for name, value in more.items()}
    text = json.dumps({"NServiceBus.MessageId": id, "NServiceBus.TimeSent": sent, **given})
    return text[:-1] + f', "NServiceBus.EnclosedMessageTypes": "{types}"}}'


@pytest.mark.parametrize(
    ("q", "names"),
    [
        ("type:PlaceOrder", ["order"]),
        ("type:=Shop.PlaceOrder", ["order"]),
        ("type:Inner", ["plus"]),
        ("type:Shop.*", ["order", "plus", "leap", "expired"]),
        ('type:=""', ["odd"]),
        ("-type:Ping", ["order", "plus", "odd"]),
        ("id:m-2", ["plus"]),
        ("zq7", ["plus"]),
        ('"zq7 text" OR id:m-1', ["order", "plus"]),
        ("body.order.no:=4711", ["order"]),
        ("body:ana", ["order"]),
        ("header.Shop.Tenant:RAV", ["order"]),
        ("headers:raven", ["order"]),
        ("size:>=1kb", ["expired"]),
        ("sent:2026-11-20", ["order", "expired"]),
        ("sent:<2026-11-20", ["plus", "leap"]),
        ("age:>1s -id:m-4", ["order", "plus", "expired"]),
        ("(type:Ping OR type:Inner) sent:>2026-11-01", ["plus", "expired"]),
        ("type:Ping is:expired", ["expired"]),
        ("is:expired type:PlaceOrder", []),
        ("seq:>2 type:Ping", ["leap", "expired"]),
        ("seq:<5 type:Ping", ["leap"]),
    ],
)
def test_each_field_finds_its_own(looked_at: Recorded, planted: dict[str, str], q: str, names: list[str]) -> None:
    assert sorted(found(looked_at.operator, "Search", q=q)) == sorted(planted[name] for name in names)


@pytest.mark.parametrize(
    ("typed", "word", "why"),
    [
        ("died:today", "died:today", "has not died"), ("fp:0123456789abcdef", "fp:", "has not died"),
        ("error:Boom", "error:Boom", "has not died"), ("type:A state:dead", "state:dead", "is:expired"),
        ("queue:Sales", "queue:Sales", "one queue"), ("attempts:>3", "attempts:>3", "stands nowhere"),
        ("op:5", "op:5", "has not died"), ("message:x", "message:x", "has not died"),
        ("age:>1hh", "age:>1hh", "no duration"), ("(type:A", "(", "not closed"),
        ("nope:1", "nope:1", "no field nope:. Use one of body:, conversation:, headers:, id:"),
        ("(seq:5 OR type:A)", "seq", "stands by itself"), ("is:late", "is:late", "is:expired alone"),
        ("seq:>x", "seq:>x", "not a seq"), ("endpoint:A", "endpoint:A", "OriginatingEndpoint"),
    ],
)  # fmt: skip
def test_invalid_search_is_refused_with_its_position(looked_at: Recorded, typed: str, word: str, why: str) -> None:
    html = page(looked_at.operator, q=typed)
    assert word in unescape(html.split('id="mqe">')[1].split("<mark>")[1].split("</mark>")[0])
    assert why in said(html)
    assert not IDS.findall(html)


@pytest.mark.parametrize("order", ["head", "newest"])
def test_a_search_goes_on_where_it_stopped_and_finds_all(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """In windows of a few rows: the matches equal the database's recount, each once, in the order of the list."""
    monkeypatch.setattr(waiting_search, "ROWS", 70)
    monkeypatch.setattr(waiting_search, "FIRST", 30)
    monkeypatch.setattr("pgqueue_admin.console.messages.detail.message_list.ROWS", 20)
    where = "headers ilike '%7a%' and octet_length(body) > 0"
    seen, address = list[str](), f"?order={order}&q=headers:7a size:>0"
    while address:
        html = looked_at.operator.get(f"/queues/public/Mailer/messages/{address}").content.decode()
        assert "Looked through" in html
        seen += list(dict.fromkeys(IDS.findall(html)))
        following = re.search(r'rel="next" href="([^"]+)"', html)
        address = unescape(following[1]) if following else ""
    by = "seq" if order == "head" else "seq desc"
    meant = [str(row.id) for row in looked_at.connection.all(f'select id from "Mailer" where {where} order by {by}')]
    assert len(meant) > 20, len(meant)
    assert seen == meant


def test_the_line_says_what_was_looked_through(looked_at: Recorded, planted: dict[str, str]) -> None:
    assert "Looked through 5 rows, which are all from there." in said(page(looked_at.operator, "Search", q="nothing"))
    assert "Looked through 2 rows" in said(page(looked_at.operator, "Search", q="nothing", after=pack(3)))


def test_search_of_texts_needs_the_read_right(looked_at: Recorded, planted: dict[str, str]) -> None:
    for q in ("zq7", "body:zq7", "-headers:x", "(id:m-1 OR body.who:ana)"):
        html = page(looked_at.counter, "Search", q=q)
        assert 'id="mqe"' in html
        assert not IDS.findall(html)
    assert found(looked_at.counter, "Search", q="type:PlaceOrder") == [planted["order"]]
    rule = MaskingRule.objects.create(name="Who", kind="path", pattern="who")
    try:
        reader = looked_at.signed_in("rita", Permission.objects.filter(codename="read_message"))
        assert "letter by letter" in page(reader, "Search", q="body.who:a")
        assert found(reader, "Search", q="body.order.no:4711") == [planted["order"]]
    finally:
        rule.delete()


def test_where_many_have_one_seq_it_is_refused(recorded: Recorded) -> None:
    recorded.connection.run('create table "Tied" as select id, expires, headers, body, 5 as seq from "Mailer" limit 9')
    sample()
    assert "several rows may have one seq" in said(page(recorded.operator, "Tied", q="type:x")).lower()


def test_delayed_messages_too(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    table = recorded.connection.value(
        "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'due'"
        " where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace limit 1"
    )
    address = Address("public", table)
    due = [str(uuid.uuid4()) for _ in range(7)]
    for number, id in enumerate(due):
        recorded.connection.run(
            f'insert into "{address.table}" (id, headers, body, due) values'
            " (%(id)s, %(headers)s, 'x', now() + interval '1 day')",
            {"id": id, "headers": _headers("Shop.Zq7", f"d-{number}")},
        )
    sample()
    assert sorted(found(recorded.operator, table, q="type:Zq7")) == sorted(due)
    assert found(recorded.operator, table, q="id:d-3") == [due[3]]
    html = page(recorded.operator, table, q="type:A seq:>5")
    assert "<mark>seq:&gt;5</mark>" in html
    assert "of queues" in html
    monkeypatch.setattr(waiting_search, "ROWS", 3)
    monkeypatch.setattr(waiting_search, "FIRST", 2)
    seen, at = list[str](), "?q=type:Zq7"
    while at:
        html = recorded.operator.get(f"/queues/public/{table}/messages/{at}").content.decode()
        seen += dict.fromkeys(IDS.findall(html))
        following = re.search(r'rel="next" href="([^"]+)"', html)
        at = unescape(following[1]) if following else ""
    assert sorted(seen) == sorted(due)
