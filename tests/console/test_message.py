"""The page of a waiting or archived message: what it shows, which acts it offers, what it never does (C3, C4, T6)."""

import re
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from pgqueue_admin.archive import ingester, store
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.transport.wire import headers as wire
from tests.archived_messages import succeed
from tests.console.pages import Answer
from tests.console.recorded import ERRORS, Recorded
from tests.console.sampled import elsewhere


@pytest.fixture
def refused(recorded: Recorded) -> int:
    return recorded.refused_card()


@pytest.fixture
def card(looked_at: Recorded) -> int:
    return looked_at.refused_card()


def shown(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return response.content.decode()


def first_row(recorded: Recorded, table: str, order: str = "seq") -> UUID:
    return recorded.connection.value(f'select id from "{table}" order by {order} limit 1')


def act(client: Client, kind: str, archive_id: int, **more: str) -> Answer:
    given = {"act": kind, "id": archive_id, "at_once": "yes", "next": f"/archive/{archive_id}/", **more}
    return client.post("/operations/", given)


def test_a_dead_message_tells_its_story(looked_at: Recorded, card: int) -> None:
    html = shown(looked_at.operator, f"/archive/{card}/")
    for said in (
        "ChargeCard", "Retry to Billing", "What happened", "Sent by", "Dead: archived as", "If you retry",
        "PaymentGateway+RefusedException", "ChargeCardHandler.cs:14", "frames of NServiceBus",
    ):  # fmt: skip
        assert said in html


def test_a_dead_message_says_of_which_failure_it_is_and_whose_that_is(recorded: Recorded, refused: int) -> None:
    died = "update messages.message_archive set died_at = now() - interval '2 hours'"
    recorded.connection.run(died)
    fingerprint = recorded.connection.value(
        "select fingerprint from messages.message_archive where id = %(id)s", {"id": refused}
    )
    said = {"owner": "Shop team", "ticket": "SHOP-1", "note": "Waits for <7.2.1>"}
    recorded.operator.post(f"/failures/{fingerprint}/assignment/", said)
    html = shown(recorded.operator, f"/archive/{refused}/")
    assert f'<a href="/failures/{fingerprint}/">Open the group</a>' in html
    for each in ("Shop team", "SHOP-1", "Waits for &lt;7.2.1&gt;"):
        assert each in html
    assert "Its cause still happens" not in html
    recorded.connection.run(
        f"{died.partition('set')[0]} set died_at = now() where fingerprint = %(f)s", {"f": fingerprint}
    )
    others = recorded.connection.value(
        "select count(*) - 1 from messages.message_archive where fingerprint = %(f)s", {"f": fingerprint}
    )
    html = shown(recorded.operator, f"/archive/{refused}/")
    assert re.search(
        rf"still happens:</b> .*?{others}.*? other messages? died of it in the last 10 min", html, re.DOTALL
    )


def test_succeeded_message_belongs_to_no_failure(recorded: Recorded, refused: int) -> None:
    recorded.connection.run(
        "update messages.message_archive set result = 'success', fingerprint = null where id = %(id)s", {"id": refused}
    )
    assert "Open the group" not in shown(recorded.operator, f"/archive/{refused}/")


def test_headers_stand_in_parts_and_say_what_a_retry_does(looked_at: Recorded, card: int) -> None:
    html = shown(looked_at.operator, f"/archive/{card}/")
    for said in ("Identity", "Failure", "Diagnostics", "On retry", "removed", "failure headers"):
        assert said in html


def test_retry_of_one_acts_at_once_and_the_second_is_told_who(recorded: Recorded, refused: int) -> None:
    before = recorded.rows("Billing")
    first = act(recorded.operator, "retry", refused)
    second = act(recorded.second, "retry", refused)
    assert (first.status_code, first["Location"]) == (303, f"/archive/{refused}/")
    assert recorded.rows("Billing") == before + 1
    html = shown(recorded.second, second["Location"])
    assert "Nothing was retried." in html
    assert "by ana at" in html
    assert "Retry to Billing" not in html
    assert "Retried by ana" in html


def fact(html: str, name: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html.partition(f"<dt>{name}</dt>")[2].partition("</dd>")[0]).split())


def test_message_that_died_once_shows_no_count_of_deaths(recorded: Recorded, refused: int) -> None:
    assert "Deaths here" not in shown(recorded.operator, f"/archive/{refused}/")


def test_message_dead_again_links_to_its_newest_row(recorded: Recorded, refused: int) -> None:
    act(recorded.operator, "retry", refused)
    row = recorded.connection.one('delete from "Billing" where seq = (select max(seq) from "Billing") returning *')
    assert row is not None
    headers = wire.dump({**wire.parse(row.headers), wire.FAILED_Q: '"public"."Billing"'})
    sent = {"id": row.id, "headers": headers, "body": row.body}
    recorded.connection.run("insert into error (id, headers, body) values (%(id)s, %(headers)s, %(body)s)", sent)
    ingester.ingest(recorded.connection, ERRORS, limit=4000)
    html = shown(recorded.operator, f"/archive/{refused}/")
    assert "2; 1 retry" in fact(html, "Deaths here")
    assert "Died again" in html
    [there] = re.findall(r'href="(/messages/[^"]+)">find every copy', html)
    found = shown(recorded.operator, there)
    message = store.get(recorded.connection, refused)
    assert message is not None
    history = html[html.index('id="log"') :]
    assert all(said in history for said in ("Died again, as a new dead message", "Retried by ana"))
    assert "archive died again" not in " ".join(re.sub("<[^>]+>", " ", history).split())
    ids = recorded.dead(5, state=None, message_id=message.message_id)
    assert [recorded.state(each) for each in ids] == ["dead", "dead_again"]
    assert all(f'href="/archive/{each}/"' in found for each in ids)


def test_the_retried_row_is_stripped(recorded: Recorded, refused: int) -> None:
    act(recorded.operator, "retry", refused)
    headers = recorded.connection.value('select headers from "Billing" order by seq desc limit 1')
    assert "FailedQ" not in headers
    assert "ExceptionInfo" not in headers


def test_last_act_is_shown_with_its_person(recorded: Recorded, refused: int, settings: Any) -> None:
    """No person makes a message dead or succeeded."""
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    address, listed = f"/archive/{refused}/", "/archive/?q=op%3A{}"
    assert "is kept. Restore brings it back for 30 days." in shown(recorded.operator, address)
    for kind, state, said in (
        ("discard", "discarded", "by ana,"), ("restore", "dead", "restored by ana,"), ("retry", "retried", "by ana,"),
    ):  # fmt: skip
        act(recorded.operator, kind, refused)
        for place in (address, listed.format(Operation.objects.latest("pk").pk)):
            assert re.search(rf'{state}</span>\s*<span class="[^"]*">{said}', shown(recorded.operator, place))
    assert succeed(recorded.connection, refused)
    assert re.search(r'succeeded</span>\s*<span class="[^"]*">retried by ana,', shown(recorded.operator, address))


def test_discard_and_restore_leave_a_trace(recorded: Recorded, refused: int) -> None:
    act(recorded.operator, "discard", refused, reason="bought elsewhere")
    html = shown(recorded.operator, f"/archive/{refused}/")
    assert "Discarded by ana" in html
    assert "bought elsewhere" in html
    assert "Restore" in html
    act(recorded.second, "restore", refused)
    assert recorded.state(refused) == "dead"
    assert [event.verb for event in store.events(recorded.connection, refused)] == ["discarded", "restored"]
    assert AuditEntry.objects.filter(verb="discard", who="ana", reason="bought elsewhere").count() == 1


def test_a_viewer_is_refused_on_the_page_and_on_the_server(looked_at: Recorded, card: int) -> None:
    html = shown(looked_at.viewer, f"/archive/{card}/")
    assert (
        "needs the right “Can discard and restore dead messages”, which an administrator gives in Django admin" in html
    )
    response = act(looked_at.viewer, "retry", card)
    assert response.status_code == 303
    assert looked_at.state(card) == "dead"
    assert "Nothing was retried" in shown(looked_at.viewer, response["Location"])


def test_retry_is_off_where_the_queue_is_gone(recorded: Recorded, refused: int) -> None:
    recorded.connection.run('drop table "Billing" cascade')
    html = shown(recorded.operator, f"/archive/{refused}/")
    assert "Its queue is gone" in html
    act(recorded.operator, "retry", refused)
    assert recorded.state(refused) == "dead"


def test_an_act_without_its_token_is_refused(recorded: Recorded, refused: int) -> None:
    recorded.operator.handler.enforce_csrf_checks = True
    assert act(recorded.operator, "retry", refused).status_code == 403
    assert recorded.state(refused) == "dead"


def test_a_sender_cannot_lead_elsewhere(recorded: Recorded, refused: int) -> None:
    answer = act(recorded.operator, "discard", refused, next="https://evil.example/")
    assert answer["Location"] == f"/archive/{refused}/"


def test_looking_changes_nothing(recorded: Recorded, refused: int) -> None:
    sums = """select (select sum(hashtext(a::text)) from messages.message_archive a) as archive,
        (select sum(hashtext(s::text)) from "Sales" s) as sales,
        (select count(*) from messages.archive_event) as events"""
    before = recorded.connection.one(sums)
    row = first_row(recorded, "Sales")
    for path in (
        f"/archive/{refused}/", f"/archive/{refused}/?body=hex&trace=full&q=state:dead", f"/archive/{refused}/body/",
        f"/queues/public/Sales/messages/{row}/", f"/queues/public/Sales/messages/{row}/body/",
        "/archive/", "/operations/", f"/messages/{refused}/",
    ):  # fmt: skip
        response = recorded.operator.get(path)
        assert response.status_code in {200, 302}
        response.close()
    assert recorded.connection.one(sums) == before
    assert not Operation.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_waiting_message_has_no_acts(looked_at: Recorded) -> None:
    row = first_row(looked_at, "Sales")
    html = shown(looked_at.operator, f"/queues/public/Sales/messages/{row}/")
    assert "QuotePrice" in html
    assert "Expired: whoever receives it drops it unread" in html
    assert "/operations/" not in html.split("<main", 1)[1]


def test_bodystring_says_where_it_came_from(looked_at: Recorded) -> None:
    sales, mailer = first_row(looked_at, "Sales"), first_row(looked_at, "Mailer")
    with_column = shown(looked_at.operator, f"/queues/public/Sales/messages/{sales}/?body=bodystring")
    without = shown(looked_at.operator, f"/queues/public/Mailer/messages/{mailer}/?body=bodystring")
    assert "from the column bodystring" in with_column
    assert "decoded by this console" in without


def test_bodystring_of_a_large_body_says_which_bytes_it_shows(looked_at: Recorded) -> None:
    row = looked_at.connection.value('select id from "Sales" order by octet_length(body) desc limit 1')
    path = f"/queues/public/Sales/messages/{row}/?body=bodystring"
    first = shown(looked_at.operator, path)
    assert "from the column bodystring" in first
    (end,) = re.findall(r"Bytes 0 to ([\d,]+) of 1,049,141", first)
    on = f"&amp;from={end.replace(',', '')}"
    assert f"{on}#body" in first
    second = shown(looked_at.operator, path + unescape(on))
    assert "decoded by this console" in second
    assert f"Bytes {end} to" in second


@pytest.mark.parametrize("view", ["", "pretty", "raw", "hex", "bodystring", "nonsense"])
@pytest.mark.parametrize(
    "table", ["Poison.OddValues", "Poison.MalformedHeaders", "Poison.NullHeaders", "Poison.NullBody"]
)
def test_hostile_messages_are_text(looked_at: Recorded, table: str, view: str) -> None:
    for row in looked_at.connection.all(f'select id from "{table}"'):
        html = shown(looked_at.operator, f"/queues/public/{table}/messages/{row.id}/?body={view}")
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert " style=" not in html


def test_headers_that_are_no_json_are_shown_raw_with_the_complaint(looked_at: Recorded) -> None:
    row = looked_at.connection.value("""select id from "Poison.MalformedHeaders" where headers like '[%'""")
    html = shown(looked_at.operator, f"/queues/public/Poison.MalformedHeaders/messages/{row}/")
    assert "These headers cannot be read" in html
    assert "an array, not an object" in html
    assert re.search(r"<dt>Sent</dt>\s*<dd>unknown</dd>", html), "no two dashes"


def test_a_null_body_is_told_to_wedge_the_queue(looked_at: Recorded) -> None:
    row = looked_at.connection.value('select id from "Poison.NullBody" where body is null')
    html = shown(looked_at.operator, f"/queues/public/Poison.NullBody/messages/{row}/")
    assert "NULL: this message can wedge the queue" in html
    assert looked_at.operator.get(f"/queues/public/Poison.NullBody/messages/{row}/body/").status_code == 404


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")  # the product serves it to async
def test_a_body_of_50_mb_is_read_a_piece_at_a_time(looked_at: Recorded) -> None:
    row = looked_at.connection.value(
        """insert into "Mailer" (id, headers, body)
        values (gen_random_uuid(), '{}', convert_to(repeat('{"n":1},', 6250000), 'utf8')) returning id"""
    )
    path = f"/queues/public/Mailer/messages/{row}/"
    html = shown(looked_at.operator, path)
    assert "Show the next 64 kB" in html
    assert len(html) < 200_000
    last = shown(looked_at.operator, f"{path}?from={50_000_000 - 10}&body=raw")
    assert "From the start" in last
    response = looked_at.operator.get(f"{path}body/")
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert sum(len(piece) for piece in response) == 50_000_000


def test_the_next_piece_begins_where_the_last_ended(looked_at: Recorded) -> None:
    row = looked_at.connection.value('select id from "Sales" order by octet_length(body) desc limit 1')
    html = shown(looked_at.operator, f"/queues/public/Sales/messages/{row}/?body=raw&from=65536")
    assert "Bytes 65,536 to 131,072 of" in html


def test_neighbours_of_the_list_it_came_from(looked_at: Recorded) -> None:
    newest, second, third = looked_at.dead(3)
    html = shown(looked_at.operator, f"/archive/{second}/?q=state:dead")
    assert f"/archive/{newest}/?q=state%3Adead" in html
    assert f"/archive/{third}/?q=state%3Adead" in html


def test_missing_message_is_reported(looked_at: Recorded) -> None:
    missing = "00000000-0000-0000-0000-000000000000"
    assert "Not in Sales now" in shown(looked_at.operator, f"/queues/public/Sales/messages/{missing}/", 404)
    assert "No such message in the archive" in shown(looked_at.operator, "/archive/999999999/", 404)
    assert shown(looked_at.operator, f"/queues/secret/Sales/messages/{missing}/", 404)
    assert looked_at.operator.get("/archive/99999999999999999999/").status_code == 404


def test_a_database_that_is_down_is_told_on_the_page(looked_at: Recorded, card: int) -> None:
    with elsewhere("queues", NAME="no_such_database"):
        html = shown(looked_at.operator, f"/archive/{card}/")
    assert 'role="alert"' in html
    assert "nothing was lost" in html
