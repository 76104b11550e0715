"""Fields of bodies as columns: the default ones, chosen ones, and never one that the user may not read."""

import json
import re
import uuid
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.models import MaskingRule, PayloadChoice
from pgqueue_admin.models.queue_database import queue_database
from tests.console.recorded import Recorded
from tests.console.sampled import sample
from tests.console.test_archive_export import records, rows

TYPE = "Shop.Invoices.Bill"
CELL = re.compile(r'<td role="cell" class="mono" data-l="([^"]*)" dir="auto">\s*(.*?)\s*</td>', re.DOTALL)
KEEPING = re.compile(r'<input type="hidden" name="(cols|of)" value="([^"]*)">')


def bill(recorded: Recorded, body: Any, type: str = TYPE) -> int:
    """A dead message with this body."""
    written = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return int(
        recorded.connection.value(
            "insert into messages.message_archive (message, result, handled_by, created_at, kind, queue, message_type,"
            " body, headers) values ('{}', 'failed', 'Billing', now() at time zone 'utc', 'transport',"
            ' \'"public"."Billing"\', %(type)s, %(body)s, %(headers)s) returning id',
            {"type": type, "body": written, "headers": json.dumps({"NServiceBus.EnclosedMessageTypes": type})},
        )
    )


def shown(client: Client, q: str = f"type:={TYPE}", **more: Any) -> str:
    answer = client.get("/archive/?" + urlencode({"q": q, **more}, doseq=True))
    assert answer.status_code == 200
    return answer.content.decode()


def cells(html: str) -> list[tuple[str, str]]:
    return [(unescape(name), unescape(re.sub("<[^>]+>", "", value))) for name, value in CELL.findall(html)]


def keeping(html: str) -> dict[str, list[str]]:
    """The fields of the form that saves the shown columns."""
    form = html.split('action="/columns/"')[1].split("</form>")[0]
    given: dict[str, list[str]] = {"cols": [], "of": []}
    for name, value in KEEPING.findall(form):
        given[name].append(unescape(value))
    return given


def test_the_first_single_values_are_columns(recorded: Recorded) -> None:
    bill(recorded, {"lines": [1], "to": {"city": "Wien"}, "OrderId": "A-1", "Total": 49.90, "note": "x"})
    assert cells(shown(recorded.operator)) == [("to.city", "Wien"), ("OrderId", "A-1")]


def test_the_address_says_which_and_a_cell_why_it_is_empty(recorded: Recorded) -> None:
    bill(recorded, {"Total": 1, "far": 1})
    bill(recorded, b"<xml/>")
    bill(recorded, None)
    bill(recorded, b'{"Total": 2, "text": "' + b"x" * store.BODY_START + b'", "far": 3}')
    found = cells(shown(recorded.operator, cols=["far", "Total", "nowhere"]))
    assert found == [
        ("far", "not read"), ("Total", "2"), ("nowhere", "not read"),
        ("far", "no body"), ("Total", "no body"), ("nowhere", "no body"),
        ("far", "no JSON"), ("Total", "no JSON"), ("nowhere", "no JSON"),
        ("far", "1"), ("Total", "1"), ("nowhere", ""),
    ]  # fmt: skip
    assert cells(shown(recorded.operator, cols="")) == []


def test_of_fifty_large_bodies_little_is_read(recorded: Recorded) -> None:
    for _ in range(3):
        bill(recorded, b'{"n": 1, "text": "' + b"x" * 10_000_000 + b'"}')
    with queue_database().read_session() as connection:
        ids = recorded.dead(10, type=TYPE)
        starts = store.body_starts(connection, ids, with_headers=False)
    assert [len(each.part) for each in starts] == [store.BODY_START] * 3
    assert {each.headers for each in starts} == {None}


def test_a_choice_is_kept_for_a_type_and_a_person(recorded: Recorded) -> None:
    bill(recorded, {"OrderId": "A-1", "Total": 5, "note": "x"})
    bill(recorded, {"Sku": "S-1", "Total": 6, "Weight": 7}, "Shop.Stock.Taken")
    q = "type:Bill OR type:Taken"
    html = shown(recorded.operator, q, cols=["Total", "Weight"])
    answer = recorded.operator.post("/columns/", {**keeping(html), "next": "/archive/?q="})
    assert (answer.status_code, answer["Location"]) == (303, "/archive/?q=")
    kept = {each.type: each.fields for each in PayloadChoice.objects.all()}
    assert kept == {TYPE: ["Total"], "Shop.Stock.Taken": ["Total", "Weight"]}
    assert cells(shown(recorded.operator)) == [("Total", "5")]
    assert cells(shown(recorded.operator, q)) == [("Total", "6"), ("Weight", "7"), ("Total", "5"), ("Weight", "")]
    assert cells(shown(recorded.second)) == [("OrderId", "A-1"), ("Total", "5")]
    assert "Forget what I have kept" in shown(recorded.operator)
    recorded.operator.post("/columns/", {**keeping(shown(recorded.operator)), "forget": "yes"})
    assert cells(shown(recorded.operator)) == [("OrderId", "A-1"), ("Total", "5")]


def test_no_columns_can_be_kept_too(recorded: Recorded) -> None:
    bill(recorded, {"OrderId": "A-1"})
    recorded.operator.post("/columns/", keeping(shown(recorded.operator, cols="")))
    assert cells(shown(recorded.operator)) == []


@pytest.mark.parametrize("of", ["x", "W10", "WyJhIiwgMV0", "WyJhXHUwMDAwIiwgWyJiIl1d"])
def test_forged_column_choice_is_not_kept(recorded: Recorded, of: str) -> None:
    assert recorded.operator.post("/columns/", {"cols": "\0", "of": of}).status_code == 303
    assert not PayloadChoice.objects.exists()


def test_a_saved_view_has_them_all(recorded: Recorded) -> None:
    bill(recorded, {"OrderId": "A-1", "Total": 5})
    query = urlencode({"q": "type:Bill", "cols": ["Total", "OrderId"]}, doseq=True)
    recorded.operator.post("/views/", {"of": "archive", "query": query, "name": "Bills", "shared": "yes"})
    html = recorded.second.get("/views/bills/", follow=True).content.decode()
    assert cells(html) == [("Total", "5"), ("OrderId", "A-1")]


def test_payload_columns_need_the_read_right(recorded: Recorded) -> None:
    bill(recorded, {"OrderId": "zq7"})
    for html in (shown(recorded.counter), shown(recorded.counter, cols="OrderId")):
        assert "zq7" not in html
        assert "OrderId</th>" not in html


def test_masked_parts_are_bars_and_of_a_body_that_was_cut_nothing_is_shown(recorded: Recorded) -> None:
    bill(recorded, {"card": "zq7", "OrderId": "A-1"})
    bill(recorded, b'{"OrderId": "A-2", "text": "' + b"x" * store.BODY_START + b'", "card": 1}')
    MaskingRule.objects.create(name="Card", kind="path", pattern="**.card")
    reader = recorded.signed_in("rita", Permission.objects.filter(codename="read_message"))
    html = shown(reader, cols=["card", "OrderId"])
    assert cells(html) == [("card", "hidden"), ("OrderId", "hidden"), ("card", "Card"), ("OrderId", "A-1")]
    assert '<span class="masked">Card</span>' in html
    assert "zq7" not in html


def test_an_export_carries_them_and_how_they_are_known(recorded: Recorded) -> None:
    bill(recorded, {"OrderId": "=A-1", "Total": 5})
    bill(recorded, b'{"OrderId": "A-2", "text": "' + b"x" * store.BODY_START + b'", "Total": 1}')
    assert 'name="cols" value="OrderId"' in shown(recorded.operator).split('id="export"')[-1]
    given: dict[str, Any] = {"q": f"type:={TYPE}", "cols": ["OrderId", "Total"]}
    first, found, last = records(recorded.operator, **given)
    told = [(each["body_fields"], each["body.OrderId"], each["body.Total"]) for each in found]
    assert told == [("not read", "A-2", None), ("whole", "=A-1", "5")]
    assert first["columns"][-3:] == ["body_fields", "body.OrderId", "body.Total"]
    assert last["whole"] is True
    heads, (_, cell), _ = rows(recorded.operator, **given)
    assert heads[-3:] == first["columns"][-3:]
    assert cell["body.OrderId"] == "'=A-1"
    audit = recorded.operator.get("/audit/").content.decode()
    assert "OrderId, Total" in audit
    exporter = recorded.signed_in("uma", Permission.objects.filter(codename="change_settings"))
    first, found, _ = records(exporter, **given)
    assert "body.OrderId" not in first["columns"]


def test_of_waiting_messages_too(recorded: Recorded) -> None:
    recorded.connection.run(
        'insert into "Sales" (id, headers, body) values (%(id)s, %(headers)s, %(body)s)',
        {
            "id": uuid.uuid4(),
            "headers": json.dumps({"NServiceBus.EnclosedMessageTypes": TYPE}),
            "body": b'{"OrderId": "zq7", "Total": 5, "Far": true}',
        },
    )
    sample()
    html = recorded.operator.get("/queues/public/Sales/messages/?order=newest&cols=OrderId&cols=Far").content.decode()
    assert cells(html)[:2] == [("OrderId", "zq7"), ("Far", "true")]
    assert "zq7" not in recorded.counter.get("/queues/public/Sales/messages/?order=newest").content.decode()
    recorded.operator.post("/columns/", keeping(html))
    assert PayloadChoice.objects.get(type=TYPE).fields == ["OrderId", "Far"]


def test_of_delayed_messages_too(recorded: Recorded) -> None:
    table, rule = "Billing.Delayed", MaskingRule(name="Card", kind="path", pattern="**.card")
    recorded.connection.run(
        f'insert into "{table}" (id, headers, body, due)'
        " values (%(id)s, %(headers)s, %(body)s, now() + interval '1 day')",
        {
            "id": uuid.uuid4(),
            "headers": json.dumps({"NServiceBus.EnclosedMessageTypes": TYPE}),
            "body": b'{"OrderId": "zq7", "Total": 5, "card": "4711"}',
        },
    )
    sample()
    address = f"/queues/public/{table}/messages/?q=type:={TYPE}"
    assert cells(recorded.operator.get(address).content.decode()) == [("OrderId", "zq7"), ("Total", "5")]
    html = recorded.operator.get(f"{address}&cols=Total&cols=card").content.decode()
    assert cells(html) == [("Total", "5"), ("card", "4711")]
    assert html.count('<input type="hidden" name="cols" value="card">') == 2, "searched again, they stay"
    recorded.operator.post("/columns/", keeping(html))
    assert cells(recorded.operator.get(f"{address}&from=now").content.decode()) == [("Total", "5"), ("card", "4711")]
    assert "zq7" not in recorded.counter.get(f"{address}&cols=OrderId").content.decode()
    rule.save()
    reader = recorded.signed_in("rita", Permission.objects.filter(codename="read_message"))
    assert cells(reader.get(f"{address}&cols=card&cols=Total").content.decode()) == [("card", "Card"), ("Total", "5")]


def test_where_bodies_cannot_be_read_the_list_stays(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    bill(recorded, {"OrderId": "A-1"})
    monkeypatch.setattr("pgqueue_admin.console.messages.payload_columns.SECONDS", 0.0)
    html = shown(recorded.operator)
    assert "Fields of bodies were not read." in html
    assert "Bill</a>" in html.replace("\n", "").replace(" ", "")
