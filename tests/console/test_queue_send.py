"""Sending one message by hand: in the senders' wire format or not at all; typed text is kept."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.models import AuditEntry, Endpoint, Queue
from pgqueue_admin.transport import Endpoint as Engine
from tests.console.pages import shown
from tests.console.recorded import Recorded
from tests.console.sampled import sample

PAGE = "/queues/public/Sales/send/"
GOOD = {"type": "Shop.Ping", "body": '{"a": "ü",  "n": 1.50}', "content_type": "application/json"}


@pytest.fixture
def sales(recorded: Recorded) -> Recorded:
    sample()
    Endpoint.objects.filter(table="Sales").delete()
    Endpoint.objects.create(name="Sales", schema="public", table="Sales")
    return recorded


def sent(client: Client, status: int = 303, page: str = PAGE, **fields: Any) -> str:
    response = client.post(page, {**GOOD, **fields})
    assert response.status_code == status
    return unescape(shown(client, response["Location"]) if status == 303 else response.content.decode())


def test_typed_message_is_sent_with_a_senders_headers(sales: Recorded) -> None:
    before = sales.rows("Sales")
    html = sent(sales.operator, headers="Customer: 47:11\n\n Region :north", reason="a probe")
    assert "1 message sent to Sales as" in html
    assert sales.rows("Sales") == before + 1
    row: Any = sales.connection.one('select * from "Sales" order by seq desc limit 1')
    headers = json.loads(row.headers)
    assert (row.expires, bytes(row.body).decode()) == (None, GOOD["body"])
    assert headers["NServiceBus.EnclosedMessageTypes"] == "Shop.Ping"
    assert (headers["Customer"], headers["Region"]) == ("47:11", "north")
    assert headers["NServiceBus.ContentType"] == "application/json"
    assert headers["NServiceBus.MessageIntent"] == "Send"
    assert {"NServiceBus.MessageId", "NServiceBus.ConversationId", "NServiceBus.TimeSent"} <= headers.keys()
    entry = AuditEntry.objects.get(verb="send")
    assert (entry.who, entry.subject, entry.reason) == ("ana", '"public"."Sales"', "a probe")
    after = {"message_id": headers["NServiceBus.MessageId"], "type": "Shop.Ping", "bytes": len(row.body)}
    assert entry.after == after


def test_a_button_that_is_pressed_twice_sends_one(sales: Recorded) -> None:
    """Also after Back. A newly opened form sends another message."""
    before = sales.rows("Sales")
    key = re.findall(r'name="form" value="(\w+)"', shown(sales.operator, PAGE))[0]
    assert "1 message sent to Sales as" in sent(sales.operator, form=key)
    refused = sent(sales.operator, 422, form=key)
    assert "Nothing more was sent: ana has sent it" in refused
    assert f'value="{key}"' in refused, "whoever presses once more has not opened it anew"
    assert sales.rows("Sales") == before + 1
    other = re.findall(r'name="form" value="(\w+)"', shown(sales.operator, PAGE))[0]
    assert other != key
    sent(sales.operator, form=other)
    assert sales.rows("Sales") == before + 2
    archive_id = sales.connection.value(
        "select max(id) from messages.message_archive where state = 'dead' and kind = 'transport'"
    )
    copy = f"/archive/{archive_id}/copy/"
    target = {
        "target": '"public"."Sales"',
        "form": re.findall(r'name="form" value="(\w+)"', shown(sales.operator, copy))[0],
    }
    assert [sales.operator.post(copy, target).status_code for _ in range(2)] == [303, 422]
    assert sales.rows("Sales") == before + 3


def test_failed_audit_after_the_send_reports_the_message_as_sent(
    sales: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who is told "unknown" sends it again."""
    before = sales.rows("Sales")
    sales.connection.run("""
        create function public.no_more() returns trigger language plpgsql as $$ begin raise 'full'; end $$;
        create trigger no_more before insert on pgqueue_console.pgqueue_auditentry
            for each row execute function public.no_more()""")
    try:
        assert "1 message sent to Sales as" in sent(sales.operator)
    finally:
        sales.connection.run("drop function public.no_more() cascade")
    assert sales.rows("Sales") == before + 1
    assert not AuditEntry.objects.filter(verb="send").exists()
    (said,) = [line for line in caplog.messages if "has no audit entry" in line]
    assert "ana: send 1 message" in said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": " "}, "a type is asked for"),
        ({"type": "A\x07"}, "a type is asked for"),
        ({"body": "{broken"}, "its body is no JSON"),
        ({"body": "[" * 100_000}, "its body is no JSON"),
        ({"body": "x" * 500_001, "content_type": "text/plain"}, "more than 500,000 bytes"),
        ({"content_type": "a/b"}, "is none of"),
        ({"headers": "nonsense"}, "is none"),
        ({"headers": "NServiceBus.MessageId: 1"}, "cannot be typed"),
    ],
)
def test_invalid_message_is_refused_and_kept_in_the_form(sales: Recorded, fields: dict[str, str], said: str) -> None:
    before = sales.rows("Sales")
    html = sent(sales.operator, 422, **fields)
    assert "Nothing was sent: " in html
    assert said in html
    assert sales.rows("Sales") == before
    assert not AuditEntry.objects.filter(verb="send").exists()


def test_text_goes_as_text(sales: Recorded) -> None:
    sent(sales.operator, body="<a>{broken</a>", content_type="text/xml")
    assert bytes(sales.connection.value('select body from "Sales" order by seq desc limit 1')) == b"<a>{broken</a>"


def test_other_queues_are_refused(sales: Recorded) -> None:
    for table, said in (
        ("error", "is no input queue of this format"),
        ("nothing", "There is no queue table nothing now"),
        ("Billing", "No endpoint of this console receives from Billing"),
    ):
        page = f"/queues/public/{table}/send/"
        assert said in unescape(shown(sales.operator, page)), table
        assert "Nothing was sent. " in sent(sales.operator, 422, page=page)
    Queue.objects.filter(table="Billing").update(acts_allowed=True)
    assert "1 message sent to Billing" in sent(sales.operator, page="/queues/public/Billing/send/")


def test_a_viewer_may_not(sales: Recorded) -> None:
    assert "needs the right" in shown(sales.viewer, PAGE)
    assert "Nothing was sent: needs the right" in sent(sales.viewer, 403)


def test_a_queue_that_leaves_the_row_out_is_not_believed(sales: Recorded) -> None:
    from tests.row_filtering_trigger import leaving_out

    leaving_out(sales.connection, 'public."Sales"', "insert", "Shop.Ping")
    assert "It took no row" in sent(sales.operator, 422)
    assert not AuditEntry.objects.filter(verb="send").exists()


def test_our_own_engine_receives_it(console_database: str, as_operator: Client) -> None:
    engine = Engine("Sales", console_database)
    engine.create_queues()
    Endpoint.objects.create(name="Sales", schema="public", table="Sales")
    Queue.objects.create(schema="public", table="Sales", kind="input")
    response = as_operator.post(PAGE, GOOD)
    assert response.status_code == 303
    from pgqueue_admin.dialects.postgresql import postgresql

    with postgresql().connect(console_database, for_handlers=True) as session, session.transaction():
        message = engine.queue.receive(session)
    assert message
    assert (message.type, message.unreadable) == ("Shop.Ping", "")
