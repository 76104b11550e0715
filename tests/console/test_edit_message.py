"""Edit and retry: what is typed is sent, as a new message, once, and only with the right."""

import json
import re
from html import unescape
from time import process_time
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client as Browser

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, DeadMessage, RetriedFrom
from pgqueue_admin.console.messages.edit import changes
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, Endpoint
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.wire import headers as h
from tests.console.pages import Connect
from tests.console.sampled import sample

SALES, BILLING = Address("public", "Sales"), Address("public", "Billing")
OLD = "8f41d7be-20c3-4c55-9f0a-b3dc0034e7a1"
BODY = '{"OrderId": "2026-121009", "CustomerId": 9007199254740993, "Price": 39.90}'
HEADERS = {
    h.MESSAGE_ID: OLD,
    h.CONVERSATION_ID: "77e1a0b4-9c1d-4f30-8d52-b3dc0034e6ff",
    h.ENCLOSED_MESSAGE_TYPES: "Shop.PlaceOrder",
    h.CONTENT_TYPE: "application/json",
    h.EXCEPTION_TYPE: "KeyError",
    h.RETRIES: "3",
    "Shop.Channel": "web",
    "Shop.Tenant": "ravenhill-at",
}


@pytest.fixture
def session(console_database: str, connect: Connect) -> Connection:
    session = connect(console_database)
    for name in ("Sales", "Billing"):
        Client(name, console_database).create_queues()
    sample(2)
    return session


def died(session: Connection, body: bytes | None = BODY.encode(), headers: dict[str, str] = HEADERS) -> int:
    about = {"queue": '"public"."Sales"', "target": SALES, "message_id": headers.get(h.MESSAGE_ID)}
    return store.archive_failed(session, DeadMessage(body=body, headers=h.dump(dict(headers)), **about))  # type: ignore[arg-type]


def typed(**more: Any) -> dict[str, Any]:
    edited = BODY.replace("39.90", "38.50")
    sent = {"body": edited, "value": ["web-repair", "ravenhill-at", "", ""], "name": ["", ""]}
    return {**sent, "to": '"public"."Sales"', "reason": "SHOP-2398", **more}


def post(client: Browser, archive_id: int, status: int = 303, **more: Any) -> str:
    answer = client.post(f"/archive/{archive_id}/edit/", typed(**more))
    assert answer.status_code == status
    return unescape(re.sub("<[^>]+>", " ", answer.content.decode()))


def waiting(session: Connection, table: str = "Sales") -> list[Any]:
    return session.all(f'select headers, body, expires from "{table}" order by seq')


def test_edited_message_is_sent_as_a_new_message(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    post(as_operator, archive_id)
    (sent,) = waiting(session)
    found = h.parse(sent.headers)
    assert json.loads(bytes(sent.body)) == {"OrderId": "2026-121009", "CustomerId": 9007199254740993, "Price": 38.5}
    assert b"38.50" in bytes(sent.body)
    assert UUID(str(found[h.MESSAGE_ID])) != UUID(OLD)
    assert (found[EDIT_OF], found["Shop.Channel"], found["Shop.Tenant"]) == (OLD, "web-repair", "ravenhill-at")
    assert found[h.CONVERSATION_ID] == HEADERS[h.CONVERSATION_ID]
    assert not {h.EXCEPTION_TYPE, h.RETRIES, RETRIED_FROM} & found.keys()
    message = store.get(session, archive_id)
    assert message is not None
    assert (message.state, message.resolved_by) == ("retried", "ana")
    assert [event.verb for event in store.events(session, archive_id)] == ["edited and retried"]


def test_the_audit_keeps_what_was_and_what_was_sent(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    post(as_operator, archive_id, body=BODY.replace("39.90", "1"))
    entry = AuditEntry.objects.get(verb="edit")
    assert (entry.who, entry.noun, entry.subject, entry.reason) == ("ana", "message", '"public"."Sales"', "SHOP-2398")
    edited = BODY.replace("39.90", "1")
    assert entry.before == {"headers": {"Shop.Channel": "web"}, "body_characters": len(BODY)}
    assert entry.bodies == {"before": BODY, "after": edited}
    assert entry.after is not None
    assert (entry.after["headers"], entry.after["archive_id"]) == ({"Shop.Channel": "web-repair"}, archive_id)
    assert entry.after["message_id"] == h.parse(waiting(session)[0].headers)[h.MESSAGE_ID]
    page = as_operator.get(f"/archive/{archive_id}/").content.decode()
    assert "Edited and retried by ana, as a new message" in page
    assert "SHOP-2398" in page


def test_edited_message_is_sent_once(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    post(as_operator, archive_id)
    said = post(as_operator, archive_id, status=409)
    assert "was retried by ana" in said
    assert len(waiting(session)) == 1


def test_a_comparison_that_comes_behind_the_send_is_no_fault(session: Connection, as_operator: Browser) -> None:
    """Retry within 0.4 s of typing sends first and compares afterwards: the browser's console stays clean."""
    archive_id = died(session)
    post(as_operator, archive_id)
    late = as_operator.post(f"/archive/{archive_id}/edit/", typed(look="1"), headers={"HX-Request": "true"})
    assert (late.status_code, late.content) == (204, b"")
    assert "was retried by ana" in post(as_operator, archive_id, status=409, look="1"), "who pressed Compare is told"


def test_a_body_that_is_left_as_it_is_keeps_its_bytes(session: Connection, as_operator: Browser) -> None:
    stored = b'\xef\xbb\xbf{ "a":1,\r\n"b" :2}'
    archive_id = died(session, body=stored)
    page = as_operator.get(f"/archive/{archive_id}/edit/").content.decode()
    post(as_operator, archive_id, body=as_sent(page))
    assert bytes(waiting(session)[0].body) == stored


def as_sent(page: str) -> str:
    """What a browser posts for an untouched text area: without a first line end, and with CR LF."""
    written = unescape(page.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0])
    return written.removeprefix("\n").replace("\n", "\r\n")


PLAIN = {**HEADERS, h.CONTENT_TYPE: "text/plain"}


@pytest.mark.parametrize("stored", [b"\nhello\nworld", b"\n\n{", b"\n"])
def test_a_body_that_begins_with_a_line_end_keeps_it(stored: bytes, session: Connection, as_operator: Browser) -> None:
    archive_id = died(session, body=stored, headers=PLAIN)
    page = as_operator.get(f"/archive/{archive_id}/edit/").content.decode()
    post(as_operator, archive_id, body=as_sent(page))
    assert bytes(waiting(session)[0].body) == stored


@pytest.mark.parametrize(
    ("stored", "content_type"),
    [
        (b"a\r\nb\nc\n", "text/plain"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?><a/>', "text/xml"),
        (b"<a/>", "text/xml; charset=windows-1252"),
        (b"[" * 300 + b"\r" + b"]" * 300, "application/json"),
    ],
)
def test_a_body_of_which_a_text_area_would_change_more_is_not_edited(
    stored: bytes, content_type: str, session: Connection, as_operator: Browser
) -> None:
    """Mixed line ends, another encoding, or invisible white space where no escape is allowed."""
    archive_id = died(session, body=stored, headers={**HEADERS, h.CONTENT_TYPE: content_type})
    assert "it is sent as it was" in as_operator.get(f"/archive/{archive_id}/edit/").content.decode()
    post(as_operator, archive_id, body="something else")
    assert bytes(waiting(session)[0].body) == stored


@pytest.mark.parametrize("declared", ["utf-8", "UTF-8", "us-ascii"])
def test_xml_that_says_it_is_utf8_is_edited(declared: str, session: Connection, as_operator: Browser) -> None:
    stored = f'<?xml version="1.0" encoding="{declared}"?><a>u</a>'
    archive_id = died(session, body=stored.encode(), headers={**HEADERS, h.CONTENT_TYPE: "text/xml"})
    post(as_operator, archive_id, body=stored.replace(">u<", ">ü<"))
    assert bytes(waiting(session)[0].body).decode() == stored.replace(">u<", ">ü<")


def test_a_changed_body_keeps_its_byte_order_mark_and_line_ends(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session, body=b"\xef\xbb\xbfone\r\ntwo", headers={h.MESSAGE_ID: OLD})
    post(as_operator, archive_id, body="one\r\nthree", value=["", ""])
    assert bytes(waiting(session)[0].body) == b"\xef\xbb\xbfone\r\nthree"


@pytest.mark.parametrize("body", [b"\xff\x00\xfe", "a\u202eb".encode(), b"x" * 500_001])
def test_a_body_that_cannot_be_seen_whole_is_sent_as_it_was(
    body: bytes, session: Connection, as_operator: Browser
) -> None:
    archive_id = died(session, body=body, headers=HEADERS | {h.CONTENT_TYPE: "text/plain"})
    assert "it is sent as it was" in as_operator.get(f"/archive/{archive_id}/edit/").content.decode()
    post(as_operator, archive_id, body="something else")
    assert bytes(waiting(session)[0].body) == body


def test_headers_are_left_out_and_added(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    post(as_operator, archive_id, drop=["Shop.Channel"], value=["web", "r", "high", ""], name=["Shop.Priority", ""])
    found = h.parse(waiting(session)[0].headers)
    own = {name: value for name, value in found.items() if name.startswith("Shop.")}
    assert own == {"Shop.Tenant": "r", "Shop.Priority": "high"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("NServiceBus.FailedQ", "is read by programs"),
        ("Pgqueue.RetriedFrom", "is read by programs"),
        ("Shop.Tenant", "There is a header Shop.Tenant already"),
        ("", "has no header's name"),
        ("a\u202eb", "is no name"),
    ],
)
def test_a_header_that_may_not_be_typed_is_refused(
    name: str, why: str, session: Connection, as_operator: Browser
) -> None:
    archive_id = died(session)
    said = post(as_operator, archive_id, 422, name=[name, ""], value=["web", "ravenhill-at", "x", ""])
    assert "Nothing was sent." in said
    assert why in said
    assert waiting(session) == []


def test_headers_that_no_line_can_hold_are_sent_as_they_were(session: Connection, as_operator: Browser) -> None:
    odd = {"Shop.Lines": "a\nb", "Shop.Turned": "\u202egnp.exe"}
    archive_id = died(session, headers=HEADERS | odd)
    page = as_operator.get(f"/archive/{archive_id}/edit/").content.decode()
    assert "2 headers of yours cannot stand in one line here; sent as before: Shop.Lines, Shop.Turned." in " ".join(
        page.split()
    )
    post(as_operator, archive_id)
    found = h.parse(waiting(session)[0].headers)
    assert {name: found[name] for name in odd} == odd


def test_another_target_queue_asks_for_confirmation(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    said = post(as_operator, archive_id, 422, to='"public"."Billing"')
    assert "Billing is not the queue where it died: press again to send it there." in said
    assert waiting(session, "Billing") == []
    post(as_operator, archive_id, to='"public"."Billing"', sure='"public"."Billing"')
    assert (len(waiting(session, "Billing")), waiting(session)) == (1, [])


def test_unchanged_message_is_retried_to_another_queue(session: Connection, as_operator: Browser) -> None:
    """To the queue where it died it would not be sent: nothing is changed."""
    archive_id = died(session)
    assert (
        f'/archive/{archive_id}/edit/#to">Retry to another queue'
        in as_operator.get(f"/archive/{archive_id}/").content.decode()
    )
    as_it_was: dict[str, Any] = {"body": BODY, "value": ["web", "ravenhill-at", "", ""]}
    post(as_operator, archive_id, to='"public"."Billing"', sure='"public"."Billing"', **as_it_was)
    assert (len(waiting(session, "Billing")), waiting(session)) == (1, [])


@pytest.mark.parametrize("queue", ['"public"."error"', '"public"."Nowhere"', '"secret"."Sales"', "pg_class", ""])
def test_edited_message_goes_into_input_queues_only(queue: str, session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    post(as_operator, archive_id, 422 if queue == "" else 409, to=queue, sure=queue)
    message = store.get(session, archive_id)
    assert message is not None
    assert message.state == "dead"
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"reason": ""}, "a reason is asked for"),
        ({"body": BODY, "value": ["web", "ravenhill-at", "", ""]}, "nothing is changed"),
    ],
)
def test_invalid_edit_is_refused_and_kept_in_the_form(
    more: dict[str, Any], why: str, session: Connection, as_operator: Browser
) -> None:
    archive_id = died(session)
    answer = as_operator.post(f"/archive/{archive_id}/edit/", typed(**more))
    assert answer.status_code == 422
    assert why in unescape(answer.content.decode())
    assert waiting(session) == []


def test_comparing_sends_nothing_and_names_what_is_wrong(session: Connection, as_operator: Browser) -> None:
    archive_id = died(session)
    said = post(as_operator, archive_id, 200, look="1", body='{"OrderId": <b>')
    assert "Not valid JSON: Expecting value, line 1, column 13" in " ".join(said.split())
    said = post(as_operator, archive_id, 200, look="1")
    assert '−   "Price": 39.90' in said
    assert '+   "Price": 38.50' in said
    assert "− Shop.Channel: web" in said
    assert waiting(session) == []


def test_edit_needs_the_retry_right(session: Connection, as_viewer: Browser) -> None:
    archive_id = died(session)
    assert "needs the right" in as_viewer.get(f"/archive/{archive_id}/edit/").content.decode()
    assert "needs the right" in post(as_viewer, archive_id, 422)
    assert waiting(session) == []


def test_hostile_text_stays_text(session: Connection, as_operator: Browser) -> None:
    attack = '</textarea><script>alert(1)</script>"{{ x }}'
    archive_id = died(
        session, body=attack.encode(), headers=HEADERS | {"Shop.Note": attack, h.CONTENT_TYPE: "text/plain"}
    )
    for page in (
        as_operator.get(f"/archive/{archive_id}/edit/").content.decode(),
        as_operator.post(f"/archive/{archive_id}/edit/", typed(look="1", body=attack, value=[attack])).content.decode(),
    ):
        assert "<script>alert" not in page


def test_outcome_of_an_edited_message_is_noted_at_its_original(session: Connection, as_operator: Browser) -> None:
    """Matched by the token of its retry, if our endpoint receives it; its message id is new."""
    Endpoint.objects.create(name="Sales", table="Sales", ours=True)
    archive_id = died(session)
    post(as_operator, archive_id)
    found = h.parse(waiting(session)[0].headers)
    said = str(found[RETRIED_FROM])
    token = UUID(said.partition(" ")[2])
    assert said.startswith(f"{archive_id} ")
    assert not store.succeeded(session, RetriedFrom(archive_id, token), str(found[h.MESSAGE_ID]), SALES, "Sales")
    assert store.succeeded(session, RetriedFrom(archive_id, token), str(found[EDIT_OF]), SALES, "Sales")

    other = died(session)
    post(as_operator, other)
    found = h.parse(waiting(session)[1].headers)
    token = UUID(str(found[RETRIED_FROM]).partition(" ")[2])
    about = {"message_id": str(found[h.MESSAGE_ID]), "edit_of": OLD, "target": SALES, "retry_token": token}
    again = store.archive_failed(session, DeadMessage(queue='"public"."Sales"', headers=h.dump(found), **about))  # type: ignore[arg-type]
    former, new = store.get(session, other), store.get(session, again)
    assert former is not None
    assert new is not None
    assert (former.state, new.state) == ("dead_again", "dead")


def test_outcome_from_the_target_queue_is_noted_at_the_original(session: Connection, as_operator: Browser) -> None:
    """Only from there: others may have read the token."""
    Endpoint.objects.create(name="Billing", table="Billing", ours=True)
    target = '"public"."Billing"'
    tokens = []
    for number in range(2):
        archive_id = died(session)
        post(as_operator, archive_id, to=target, sure=target)
        found = h.parse(waiting(session, "Billing")[number].headers)
        tokens.append((archive_id, found, UUID(str(found[RETRIED_FROM]).partition(" ")[2])))
    (first, found, token), (second, other, its_token) = tokens
    assert not store.succeeded(session, RetriedFrom(first, token), str(found[EDIT_OF]), SALES, "Sales")
    assert store.succeeded(session, RetriedFrom(first, token), str(found[EDIT_OF]), BILLING, "Billing")

    about = {"message_id": str(other[h.MESSAGE_ID]), "edit_of": OLD, "retry_token": its_token}
    for queue, address in (('"public"."Elsewhere"', Address("public", "Elsewhere")), (target, BILLING)):
        former = store.get(session, second)
        assert former is not None
        assert former.state == "retried"
        store.archive_failed(session, DeadMessage(queue=queue, target=address, headers=h.dump(other), **about))  # type: ignore[arg-type]
    former = store.get(session, second)
    assert former is not None
    assert former.state == "dead_again"


def test_an_audit_that_fails_after_the_send_says_what_was_sent(
    session: Connection, as_operator: Browser, connect: Connect, console_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Calling the outcome unknown would have the user send it again."""
    archive_id = died(session)
    connect(console_database).run("""
        create function public.no_more() returns trigger language plpgsql as $$ begin raise 'full'; end $$;
        create trigger no_more before insert on pgqueue_console.pgqueue_auditentry
            for each row execute function public.no_more()""")
    post(as_operator, archive_id)
    assert len(waiting(session)) == 1
    assert any("has no audit entry" in line and str(archive_id) in line for line in caplog.messages)


def test_code_of_others_that_a_send_would_run_is_named(session: Connection, as_operator: Browser) -> None:
    role = f"stranger_{uuid4().hex[:8]}"
    session.run(f"""
        create role {role};
        create function public.peek() returns trigger language plpgsql as 'begin return new; end';
        alter function public.peek() owner to {role};
        create trigger peek before insert on public."Sales" for each row execute function public.peek()""")
    try:
        page = as_operator.get(f"/archive/{died(session)}/edit/").content.decode()
    finally:
        session.run(f'drop trigger peek on public."Sales"; drop function public.peek(); drop role {role}')
    assert "Code of other database roles runs with the rights of this console" in page


def test_comparing_costs_little_whatever_is_compared() -> None:
    """2,000 equal lines, every second one changed, took more than a minute."""
    before = ["a"] * changes.MOST_LINES
    after = [str(number) if number % 2 else "a" for number in range(len(before))]
    began = process_time()
    assert changes.of_lines(before, after)
    assert process_time() - began < 5


def test_a_change_amid_lines_that_are_the_same_is_that_change_alone() -> None:
    before = ["a"] * 1_000
    found = changes.of_lines(before, [*before[:500], "b", *before[501:]])
    assert found
    assert [line.mark + line.text for line in found] == ["a", "a", "−a", "+b", "a", "a"]
