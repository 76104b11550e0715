"""Changing one header or field of many messages: counts and samples first, then the retry; with scripts off."""

import json
import re
from html import unescape

import pytest

from pgqueue_admin.models import AuditEntry, MaskingRule, Operation
from pgqueue_admin.services.operations import edits, runner
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import archived
from tests.console.operating import choose, follow, start
from tests.console.pages import shown
from tests.console.recorded import Recorded

TENANT = {"part": "header", "name": "Tenant", "way": "add", "new": "blue", "old": ""}


def text(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", html)))


def test_from_tick_to_sent(recorded: Recorded, cards: list[int]) -> None:
    before = recorded.rows("Billing")
    frozen = choose(recorded.operator, "edit and retry", cards)
    page = frozen["Location"]
    assert page.endswith("/edit/")
    first = shown(recorded.operator, page)
    assert "Locked" in first
    assert "a new id, so that receivers do not take it for a duplicate" in first
    looked = recorded.operator.post(page, {**TENANT, "look": "1"}).content.decode()
    assert "5 change" in text(looked)
    assert "+ Tenant: blue" in text(looked)
    assert looked.count("What changes in ") == 3
    assert Operation.objects.get().edit is None, "a look keeps nothing"
    preview = follow(recorded.operator, recorded.operator.post(page, {**TENANT, "keep": "1"}))
    for said in ("Edit and retry 5 messages to Billing in", "sets header Tenant to “blue”", "5 change"):
        assert said in text(preview)
    assert recorded.rows("Billing") == before
    seen = re.search(r'name="edit" value="(\w+)"', preview)
    assert seen
    answer = follow(recorded.operator, start(recorded.operator, page.removesuffix("edit/"), edit=seen[1]))
    assert "Cancel the remaining" in answer, text(answer)
    runner.run(Operation.objects.get().pk)
    assert recorded.rows("Billing") == before + 5
    ended = text(shown(recorded.operator, page.removesuffix("edit/")))
    assert "it sets header Tenant to “blue”" in ended
    assert "Call back" not in ended
    assert AuditEntry.objects.get(verb="retry").after["edit"]["header"] == "Tenant"  # type: ignore[index]
    assert "header Tenant" in shown(recorded.operator, "/audit/")
    message = shown(recorded.operator, f"/archive/{cards[0]}/")
    new_id = edits.sent_as(Operation.objects.get(), cards[0])
    assert f"/messages/{new_id}/" in message, "from the old to the new"
    row_id = recorded.connection.value(f"""select id from "Billing" where headers like '%{new_id}%'""")
    back = shown(recorded.operator, f"/queues/public/Billing/messages/{row_id}/")
    assert "Edited from" in back
    assert f"/messages/{h.parse(archived(cards[0]).headers)[h.MESSAGE_ID]}/" in back, "and back"


def test_a_field_of_the_body_is_shown_with_its_lines(recorded: Recorded, cards: list[int]) -> None:
    page = choose(recorded.operator, "edit and retry", cards)["Location"]
    body = bytes(
        recorded.connection.value("select body from messages.message_archive where id = %(id)s", {"id": cards[0]})
    )
    name = next(iter(json.loads(body.decode("utf-8-sig"))))
    asked = {"part": "field", "name": name, "way": "set", "new": "other", "look": "1"}
    looked = text(recorded.operator.post(page, asked).content.decode())
    assert "5 change" in looked
    assert f'+ "{name}": "other"' in looked
    assert f'− "{name}": "' in looked


def test_a_start_that_saw_another_edit_is_refused(recorded: Recorded, cards: list[int]) -> None:
    page = choose(recorded.operator, "edit and retry", cards)["Location"]
    follow(recorded.second, recorded.second.post(page, {**TENANT, "keep": "1"}))
    answer = start(recorded.operator, page.removesuffix("edit/"), edit="")
    assert "set anew since you looked" in follow(recorded.operator, answer)
    assert Operation.objects.get().state == "frozen"


def test_a_change_is_taken_off_again(recorded: Recorded, cards: list[int]) -> None:
    page = choose(recorded.operator, "edit and retry", cards)["Location"]
    follow(recorded.operator, recorded.operator.post(page, {**TENANT, "keep": "1"}))
    preview = follow(recorded.operator, recorded.operator.post(page, {**TENANT, "drop": "1"}))
    assert "Change one header or field first" in preview


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "NServiceBus.ConversationId"}, "read by programs"),
        ({"name": ""}, "Name the header"),
        ({"part": "field", "name": "a..b"}, "is no path"),
        ({"way": "explode"}, "what becomes of it"),
    ],
)
def test_invalid_edit_is_refused_and_kept_in_the_form(
    recorded: Recorded, cards: list[int], wrong: dict[str, str], why: str
) -> None:
    page = choose(recorded.operator, "edit and retry", cards)["Location"]
    answer = recorded.operator.post(page, {**TENANT, **wrong, "keep": "1"})
    assert answer.status_code == 422
    assert why in unescape(answer.content.decode())
    assert 'value="blue"' in answer.content.decode()


def test_edit_without_the_read_right_shows_no_value(recorded: Recorded, cards: list[int]) -> None:
    page = choose(recorded.operator, "edit and retry", cards)["Location"]
    secret = {**TENANT, "name": "Customer", "new": "Mrs Secret"}
    follow(recorded.operator, recorded.operator.post(page, {**secret, "keep": "1"}))
    for path in (page, page.removesuffix("edit/"), "/audit/", "/operations/"):
        assert "Mrs Secret" not in shown(recorded.counter, path), path
    assert recorded.counter.post(page, {**TENANT, "keep": "1"}).status_code == 403
    MaskingRule.objects.create(name="people", kind="header", pattern="Customer", types=[])
    for path in (page, page.removesuffix("edit/")):
        assert "Mrs Secret" not in shown(recorded.viewer, path), path
    start(recorded.operator, page.removesuffix("edit/"), edit=edits.seen(Operation.objects.get()))
    for client in (recorded.counter, recorded.viewer):
        assert "Mrs Secret" not in shown(client, "/audit/")
        assert "Mrs Secret" not in shown(client, page.removesuffix("edit/"))


def test_edit_page_of_a_message_leads_to_an_edit_of_all_like_it(recorded: Recorded, cards: list[int]) -> None:
    html = shown(recorded.operator, f"/archive/{cards[0]}/edit/")
    q = re.search(r'name="q" value="([^"]+)"', html)
    assert q
    answer = choose(recorded.operator, "edit and retry", all="matching", q=unescape(q[1]))
    assert answer.status_code == 303
    assert Operation.objects.get().count >= 5
