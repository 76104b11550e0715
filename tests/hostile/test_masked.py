"""Every address, as somebody who reads messages and reveals nothing: what a masking rule hides is in no answer."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from pgqueue_admin.console.archive import export
from pgqueue_admin.console.messages.detail import body, summary
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.models import AuditEntry, MaskingReveal, MaskingRule, database_clock
from pgqueue_admin.services import content_access
from tests.history.files import TEN
from tests.hostile import crawl
from tests.hostile.hostile_site import World
from tests.hostile.test_no_read_right import BILLING, BODY, LISTS, MARK, _kill, _read, _said, every, planted, telling

__all__ = ["every", "planted", "telling"]
EXPRESSION = {"name": "Orders (& more)", "kind": "regex", "pattern": "zq7body[a-z0-9]*"}
BY_PLACE = (
    {"name": "Card", "kind": "header", "pattern": "shop.c*"},
    {"name": "Said", "kind": "header", "pattern": "NServiceBus.ExceptionInfo.*"},
    {"name": "Order", "kind": "path", "pattern": "order"},
    {"name": "Card in JSON", "kind": "path", "pattern": "**.card"},
    {"name": "Names", "kind": "path", "pattern": "zq7bodyzq7"},
)
SECRET_SEARCHES = (
    "zq7body", '"zq7body"', "body:zq7body", "body.order:zq7body", "headers:zq7body", "header.Shop.Card:zq7body",
    "message:zq7body", "-zq7body", "state:dead (type:x OR zq7body)", "-(body.order:=zq7bodyzq7)", "body.ORDER:z",
    "body.order.0.x:z", "body.lines.0.card:z",
)  # fmt: skip
OPEN_SEARCHES = ("type:Shop.PlaceOrder", "error:Shop.Boom", "conversation:c-4711", "size:>1", "state:dead age:<30d")
OPEN_BY_PLACE = (*OPEN_SEARCHES, "body.other:x", "header.Shop.Other:x", "body.other.0:x")
_TEXTS = (
    "queue", "endpoint", "type", "message_id", "sent_at", "started_at", "critical_ms", "processing_ms", "delivery_ms",
    "exception_type", "exception_message",
)  # fmt: skip
HIDDEN_AS_A_WHOLE = "Hidden as a whole"


@contextmanager
def masked(*rules: dict[str, str]) -> Iterator[None]:
    made = [MaskingRule.objects.create(**each) for each in rules]
    try:
        yield
    finally:
        MaskingRule.objects.filter(pk__in=[each.pk for each in made]).delete()


@pytest.fixture(scope="module")
def reader(world: World) -> Client:
    """Django admin, too, and every right but the one."""
    person = User.objects.create_user("reader", is_staff=True)
    person.user_permissions.set(Permission.objects.exclude(codename="reveal_masked"))
    return world.client("reader", raise_request_exception=False)


def test_no_answer_has_what_an_expression_hides(
    reader: Client, every: list[tuple[str, str]], telling: list[tuple[str, str]]
) -> None:
    with masked(EXPRESSION):
        addresses = dict.fromkeys([*crawl.few(every, 1), *telling])
        answers = [(path, _said(answer)) for _, path, answer in crawl.get(reader, addresses)]
    assert [path for path, said in answers if MARK[:7] in said.replace(EXPRESSION["pattern"], "")] == []


def test_without_rules_it_is_there(reader: Client, telling: list[tuple[str, str]]) -> None:
    told = {name for name, _, answer in crawl.get(reader, telling) if MARK in _said(answer)}
    assert told >= LISTS | {"archived_message", "archived_body", "edit_message", "waiting_message", "lease_message"}


def test_no_answer_has_what_rules_by_place_hide(
    reader: Client, planted: SimpleNamespace, telling: list[tuple[str, str]]
) -> None:
    """Logs have no places: there only expressions are looked for, as is said."""
    with masked(*BY_PLACE):
        paths = [(name, path) for name, path in telling if "/log/" not in path and not path.startswith("/workers/")]
        leaks = [path for _, path, answer in crawl.get(reader, paths) if MARK in _without_names(_said(answer))]
    assert leaks == []


def _without_names(said: str) -> str:
    """A rule by place hides values: the name of a field stays, also as a column of a list."""
    box = rf'name="cols" value="{MARK}"( checked)?>\s*{MARK}\s*</label>'
    boxes = re.sub(box, "", said)
    for column in (f'<th scope="col">{MARK}</th>', f'data-l="{MARK}"', f'name="cols" value="{MARK}"'):
        boxes = boxes.replace(column, "")
    return (
        boxes.replace(f"Columns from bodies: order, {MARK}<", "<")
        .replace(f'<span class="k">&quot;{MARK}&quot;</span>', "")
        .replace(f"&quot;{MARK}&quot;: ", "")
        .replace(f"&quot;{MARK}&quot;:", "")
    )


@pytest.mark.parametrize("rules", [[EXPRESSION], BY_PLACE], ids=["expression", "place"])
def test_a_search_is_no_oracle(reader: Client, rules: Any) -> None:
    with masked(*rules):
        for asked in SECRET_SEARCHES:
            html = reader.get(f"/archive/?q={quote(asked)}").content.decode()
            assert "letter by letter" in html, asked
            assert "Shop.Boom" not in html
        before = AuditEntry.objects.count()
        reader.post("/operations/", {"act": "discard", "all": "matching", "q": "body.order:zq7", "w": "W10"})
        assert AuditEntry.objects.count() == before
        reader.get("/archive/?q=")  # which says what the act was refused for
        for asked in OPEN_SEARCHES if len(rules) == 1 else OPEN_BY_PLACE:
            assert "letter by letter" not in reader.get(f"/archive/?q={quote(asked)}").content.decode(), asked
        lease = reader.get("/queues/messages/message/messages/?q=zq7body").content.decode()
        assert "letter by letter" in lease


@pytest.mark.parametrize("rules", [[EXPRESSION], BY_PLACE], ids=["expression", "place"])
def test_no_file_of_messages_has_what_rules_hide(world: World, reader: Client, rules: Any) -> None:
    """Nor the start of it, where a long text is cut within a hidden part."""
    whole, cut = _kill(world), _kill(world)
    headers = f'{{"Shop.Other": "{"x" * 65_499}", "Shop.Card": "{MARK}"}}'
    world.queues.run(
        "update messages.message_archive set exception_message = %(error)s, headers = %(headers)s where id = %(id)s",
        {"error": "x" * 9_996 + MARK, "headers": headers, "id": cut},
    )
    assert headers[:65_536].endswith(MARK[:4])
    with masked(*rules):
        for kind in ("csv", "jsonl"):
            file: Any = reader.post("/archive/export/", {"q": "", "format": kind})
            written = str(async_to_sync(_read)(file.streaming_content))
            file.close()
            assert "Shop.Boom" in written
            assert str(whole) in written
            assert str(cut) in written
            assert MARK[:3] not in written
            assert "masked parts" not in AuditEntry.objects.all()[0].after  # type: ignore[operator]
        assert written.startswith('{"export": "begun"')
        assert export.MASKED in written
        for asked in SECRET_SEARCHES:
            assert reader.post("/archive/export/", {"q": asked}).status_code == 303, asked
            narrowed = reader.get(f"/archive/?facets=open&q={quote(asked)}")
            assert narrowed.context["narrow"] is None, asked
    unmasked: Any = reader.post("/archive/export/", {"q": ""})
    assert MARK in str(async_to_sync(_read)(unmasked.streaming_content))


def test_the_page_names_the_rule_and_shows_the_rest(reader: Client, planted: SimpleNamespace) -> None:
    with masked(BY_PLACE[0], BY_PLACE[2]):
        page = reader.get(f"/archive/{planted.archived}/").content.decode()
        assert page.count('<span class="masked">Card</span>') == 1
        assert '<span class="masked">Order</span>' in page
        assert "Can reveal masked parts of messages" in page
        assert f"no card {MARK}" in page  # no rule hides what the exception says
        for view in ("hex", "bodystring", "raw"):
            shown = reader.get(f"/archive/{planted.archived}/?body={view}").content.decode()
            assert '<span class="masked">Order</span>' in shown, view
        for part in ("body", "headers"):
            answer: Any = reader.get(f"/archive/{planted.archived}/{part}/")
            assert answer.status_code == 403
            assert b"Not downloaded: masking rules hide parts" in answer.content


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b"no JSON " + MARK.encode(), "text/plain"),
        (b'{"order": "' + MARK.encode(), "application/json"),
        (MARK.encode("utf-16"), "application/json"),
        (b'{"order": 1, "z": "' + MARK.encode() + b'"}' + b" " * 500_001, "application/json"),
        (b"\x00\x01" + MARK.encode(), "application/octet-stream"),
    ],
    ids=["text", "cut", "utf-16", "long", "binary"],
)
def test_a_body_without_sure_fields_is_hidden_as_a_whole(
    world: World, reader: Client, raw: bytes, content_type: str
) -> None:
    row_id = uuid.uuid4()
    headers = json.dumps({"NServiceBus.ContentType": content_type})
    values = {"id": row_id, "ttbr_ms": None, "headers": headers, "body": raw}
    world.queues.run(postgresql().queue.send(table=Address("public", "Billing")), values)
    with masked(BY_PLACE[2]):
        for view in ("", "raw", "hex", "bodystring"):
            page = reader.get(f"{BILLING}{row_id}/?body={view}").content.decode()
            assert HIDDEN_AS_A_WHOLE in page
            assert MARK not in page
            assert "7a 71 37" not in page
        assert reader.get(f"{BILLING}{row_id}/body/").status_code == 403
    world.queues.run('delete from public."Billing" where id = %(id)s', {"id": row_id})


def test_a_part_of_a_body_is_hidden_as_a_whole(planted: SimpleNamespace) -> None:
    """What history cuts off may be the end by which a hidden part is known."""
    kept = FinishedMessage(**dict.fromkeys(_TEXTS), source="audit", seq=1, result="success", ended_at=TEN,
                           body_bytes=len(BODY), body=BODY[:15])  # fmt: skip
    with masked(EXPRESSION):
        facts = summary.of_finished(kept, content_access.of_everybody())
        shown = body.of_finished(kept, facts, {})
    assert shown.part is None
    assert "only a part of it is kept" in shown.withheld


def test_a_trace_begins_with_what_the_exception_says(reader: Client, planted: SimpleNamespace) -> None:
    with masked({**BY_PLACE[1], "pattern": "NServiceBus.ExceptionInfo.Message"}):
        for view in ("", "?trace=full"):
            page = reader.get(f"/archive/{planted.archived}/{view}").content.decode()
            assert f"no card {MARK}" not in page
            assert f"Shop.{MARK}()" not in page


def test_a_rule_of_a_type_hides_nothing_of_another(reader: Client, planted: SimpleNamespace) -> None:
    path = f"/archive/{planted.archived}/"
    for types, is_hidden in ((["Shop.Place*"], True), (["placeorder"], True), (["Shop.Bill", "Ship*"], False)):
        with masked({**EXPRESSION, "types": types}):  # type: ignore[dict-item]
            assert (MARK not in reader.get(path).content.decode()) is is_hidden, types


def test_a_rule_that_cannot_be_read_hides_everything(reader: Client, planted: SimpleNamespace) -> None:
    with masked({"name": "Broken", "kind": "regex", "pattern": "a(b"}):
        page = reader.get(f"/archive/{planted.archived}/").content.decode()
    assert "A masking rule cannot be read, so nothing is shown." in page
    assert MARK not in page


def test_what_is_hidden_survives_an_edit(world: World, reader: Client) -> None:
    """Never is the text of a bar sent: what may not be seen goes out as it was."""
    dead = _kill(world)
    with masked(*BY_PLACE[:3]):
        edit = reverse("edit_message", args=[dead])
        page = reader.get(edit).content.decode()
        assert MARK not in page
        assert "Masking rules hide parts of it, so it is sent as it was" in page
        sent = {"body": '{"order": "⟦masked: Order⟧"}', "name": "Shop.Ticket", "value": "T-1", "reason": "x"}
        answer = reader.post(edit, {**sent, "to": '"public"."Billing"'})
        assert answer.status_code == 303, answer.content.decode()
    found = world.queues.one('select headers, body from public."Billing" where headers like %(t)s', {"t": "%T-1%"})
    assert found
    assert bytes(found.body) == BODY
    assert json.loads(found.headers)["Shop.Card"] == MARK
    assert "masked" not in found.headers
    entry = AuditEntry.objects.filter(verb="edit")[0]
    assert MARK not in json.dumps([entry.before, entry.after, entry.bodies])


def test_fields_of_another_page_are_not_taken_for_these(world: World, reader: Client) -> None:
    """Somebody's reveal has ended since the form was opened: its values would fall into other fields."""
    edit = reverse("edit_message", args=[_kill(world)])
    shape = reader.get(edit).context["draft"].shape
    with masked(*BY_PLACE[:1]):
        typed = {"shape": shape, "value": ["secret", ""], "reason": "x", "to": '"public"."Billing"', "body": "{}"}
        answer = reader.post(edit, typed)
        assert answer.status_code == 422
        assert "What may be seen of it has changed" in answer.content.decode()
        assert "secret" not in answer.content.decode()


def test_reveal_needs_the_right_a_reason_and_ends(world: World, reader: Client, planted: SimpleNamespace) -> None:
    path, reveal = f"/archive/{planted.archived}/", reverse("masking_reveal")
    root, other = world.client("root"), world.client("root")
    with masked(EXPRESSION, *BY_PLACE):
        assert reader.post(reveal, {"reason": "x", "next": path}).status_code == 403
        root.post(reveal, {"next": path})
        assert MARK not in root.get(path).content.decode()
        assert root.post(reveal, {"reason": "customer calls", "next": path})["Location"] == path
        page = root.get(path).content.decode()
        assert MARK in page
        assert "You see masked parts until" in page
        assert root.get(f"{path}body/").status_code == 200
        assert "letter by letter" not in root.get(f"/archive/?q={MARK}").content.decode()
        file: Any = root.post("/archive/export/", {"q": ""})
        assert MARK in str(async_to_sync(_read)(file.streaming_content))
        assert AuditEntry.objects.all()[0].after["masked parts"] == "revealed"  # type: ignore[index]
        assert MARK in other.get(path).content.decode()  # the person's, whatever browser
        assert MARK not in reader.get(path).content.decode()
        root.post(reveal, {"end": "yes", "next": path})
        assert MARK not in root.get(path).content.decode()
        root.post(reveal, {"reason": "again", "next": path})
        MaskingReveal.objects.update(ends_at=database_clock.now())
        assert MARK not in root.get(path).content.decode()
    entries = AuditEntry.objects.filter(noun="masking", who="root")[:3]
    assert [(each.verb, each.reason, each.subject) for each in entries] == [
        ("reveal", "again", path), ("hide", "", path), ("reveal", "customer calls", path),
    ]  # fmt: skip
