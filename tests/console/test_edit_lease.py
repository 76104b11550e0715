"""Edit and retry of a dead lease message: JSON as typed, linked both ways, into the lease queue only."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, MaskingRule
from pgqueue_admin.services.operations import lifecycle, runner, selection, single

HOSTILE = "</textarea><script>alert(1)</script>"
MESSAGE = {"kind": "render", "asset": HOSTILE, "big": 12345678901234567890}

pytestmark = pytest.mark.usefixtures("lease_schema")


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def died(queue: LeaseQueue) -> int:
    queue.publish(MESSAGE)
    (lease,) = queue.claim()
    ended = queue.finish(lease, "failed", "no such asset")
    assert ended
    assert ended.archive_id
    return ended.archive_id


def shown(client: Client, died: int) -> str:
    return client.get(f"/archive/{died}/edit/").content.decode()


def said(answer: Any) -> str:
    return unescape(re.sub(r"<[^>]+>|\s+", " ", answer.content.decode()))


def send(client: Client, died: int, body: str, **fields: str) -> Any:
    return client.post(f"/archive/{died}/edit/", {"body": body, "reason": "renamed", **fields})


def waiting(look: Connection) -> list[Any]:
    return look.all("select id, message::text as text, retried_from, attempts from messages.message")


def test_edited_document_goes_back_and_both_are_linked(
    queue: LeaseQueue, look: Connection, as_operator: Client, died: int
) -> None:
    page = shown(as_operator, died)
    assert HOSTILE not in page
    assert "Retry to" not in page
    assert f"/archive/{died}/edit/" in as_operator.get(f"/archive/{died}/").content.decode()
    typed = '{"kind": "render",\r\n "asset": "kettle.png", "big": 12345678901234567890.5}'
    answer = send(as_operator, died, typed, to='"public"."Billing"')
    assert (answer.status_code, answer["Location"]) == (303, f"/archive/{died}/")
    (row,) = waiting(look)
    assert row.text == '{"big": 12345678901234567890.5, "kind": "render", "asset": "kettle.png"}'
    assert (row.retried_from, row.attempts) == (died, 0)
    former = look.one("select state, retried_as, resolved_by from messages.message_archive")
    assert former == ("retried", row.id, "ana")
    page = as_operator.get(answer["Location"]).content.decode()
    assert f"/queues/messages/message/messages/{row.id}/" in page
    assert f"/archive/{died}/" in as_operator.get(f"/queues/messages/message/messages/{row.id}/").content.decode()
    entry = AuditEntry._base_manager.get(verb="edit")
    assert (entry.reason, entry.subject) == ("renamed", '"messages"."message"')
    assert (entry.after or {})["message_id"] == str(row.id)
    assert (entry.bodies or {})["after"].replace("\r\n", "\n") == typed.replace("\r\n", "\n")
    assert "12345678901234567890" in (entry.bodies or {})["before"]
    (lease,) = queue.claim()
    queue.finish(lease)
    assert look.value("select state from messages.message_archive order by id limit 1") == "succeeded"


@pytest.mark.parametrize(
    ("typed", "status", "words"),
    [
        ('{"kind": }', 422, "the queue takes JSON alone, and this is none"),
        ('{"kind": NaN}', 422, "did not take it"), ('{"kind": "\\u0000"}', 422, "did not take it"),
        ("", 422, "the queue takes JSON alone"),
    ],
)  # fmt: skip
def test_invalid_document_is_refused_and_kept_in_the_form(
    look: Connection, as_operator: Client, died: int, typed: str, status: int, words: str
) -> None:
    answer = send(as_operator, died, typed)
    assert answer.status_code in (status, 409)
    assert words in said(answer)
    assert 'value="renamed"' in answer.content.decode()
    assert waiting(look) == []
    assert look.value("select state from messages.message_archive") == "dead"
    assert not AuditEntry.objects.exists()


def test_nothing_changed_is_no_edit(look: Connection, as_operator: Client, died: int) -> None:
    text = unescape(re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", shown(as_operator, died), re.DOTALL)[0])
    answer = send(as_operator, died, text)
    assert (answer.status_code, waiting(look)) == (422, [])
    assert "nothing is changed" in said(answer)


def test_the_page_compares_before_anything_is_sent(look: Connection, as_operator: Client, died: int) -> None:
    answer = send(as_operator, died, '{"kind": "render", "asset": "kettle.png"}', look="1")
    assert "kettle.png" in said(answer)
    assert waiting(look) == []


def test_edit_of_a_retried_message_is_refused(look: Connection, as_operator: Client, died: int) -> None:
    single.act("retry", died, "somebody", "command")
    answer = send(as_operator, died, "1")
    assert answer.status_code == 409
    assert "was retried by somebody" in said(answer)
    assert len(waiting(look)) == 1


def test_a_second_ending_is_not_edited(look: Connection, as_operator: Client, died: int) -> None:
    look.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " select created_at, message, 'failed', 'worker' from messages.message_archive"
    )
    second = look.value("select max(id) from messages.message_archive")
    answer = send(as_operator, second, "1")
    assert answer.status_code == 409
    assert f"Retry archived message {died}" in said(answer)
    assert f"/archive/{second}/edit/" not in as_operator.get(f"/archive/{second}/").content.decode()


def test_only_who_may_retry(look: Connection, as_viewer: Client, died: int) -> None:
    answer = send(as_viewer, died, "1")
    assert answer.status_code in (403, 422)
    assert waiting(look) == []


def test_original_clients_dead_message_is_edited_under_its_queue(look: Connection, as_operator: Client) -> None:
    look.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '{\"kind\": \"render\"}', 'failed', 'worker')"
    )
    died = look.value("select max(id) from messages.message_archive")
    assert send(as_operator, died, '{"kind": "crop"}').status_code == 303
    assert AuditEntry._base_manager.get(verb="edit").subject == '"messages"."message"'


def test_only_what_can_go_elsewhere_offers_it(as_operator: Client, died: int) -> None:
    assert "Retry to another queue" not in as_operator.get(f"/archive/{died}/").content.decode()


@pytest.mark.parametrize("headers", [None, '{"NServiceBus.EnclosedMessageTypes": "Harmless"}'])
def test_masked_field_is_not_shown_for_editing(look: Connection, as_operator: Client, headers: str | None) -> None:
    look.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, headers)"
        ' values (now(), \'{"kind": "render", "card": "4111"}\', \'failed\', \'worker\', %(headers)s)',
        {"headers": headers},
    )
    died = look.value("select max(id) from messages.message_archive")
    MaskingRule.objects.create(name="card", kind="path", pattern="card", types=["render"])
    assert "4111" not in shown(as_operator, died)


def test_edit_of_many_changes_one_field_before_the_retry(
    queue: LeaseQueue, look: Connection, as_operator: Client, died: int
) -> None:
    operation = selection.freeze("retry", [died], "ana", "console", "")
    page = f"/operations/{operation.pk}/edit/"
    first = as_operator.get(page)
    assert '<option value="field" selected>' in first.content.decode(), "it has no headers"
    assert "Locked" not in said(first)
    change = {"part": "field", "name": "asset", "way": "set", "new": "kettle.png", "old": ""}
    looked = as_operator.post(page, {**change, "look": "1"})
    assert "1 change" in " ".join(said(looked).split())
    assert "<script>alert" not in looked.content.decode()
    as_operator.post(page, {**change, "keep": "1"})
    lifecycle.start(operation.pk, "ana", "renamed")
    runner.run(operation.pk)
    (row,) = waiting(look)
    assert row.text == '{"big": 12345678901234567890, "kind": "render", "asset": "kettle.png"}'
    page = as_operator.get(f"/archive/{died}/").content.decode()
    assert f"/queues/messages/message/messages/{row.id}/" in page
    assert "find every copy" not in page, "the queue numbers it: no id that was told from the operation finds it"
