"""Edit one header or field in many dead messages: nothing else changes, each is sent once, and it is recorded."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive.edited_retry import ManyEdits
from pgqueue_admin.archive.message_edit import BOM, Edited, MessageEdit, NotEdited, new_id, of_body
from pgqueue_admin.archive.messages import EDIT_OF, ArchiveFilter
from pgqueue_admin.models import AuditEntry, MaskingRule, Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import call_back, edits, lifecycle, queries, runner, selection
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.plans import Planned
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import BILLING, OPERATOR, REFUSED, archived, dead, events_of, number_in, person, succeed
from tests.staged_retries import CALM, Clock, classes, die, look, plan_of, sent

TENANT = MessageEdit("header", "Tenant", "add", "blue")
ONE = MessageEdit("field", "b", "set", "1", is_json=True)


@pytest.fixture
def editor(archive: None) -> User:
    return person("ed", *OPERATOR, "read_message")


def edited(who: Any, edit: MessageEdit | None, **filter: Any) -> Operation:
    chosen = ArchiveFilter(**(filter or {"exception": REFUSED}))
    operation = selection.freeze("retry", chosen, who, "console", "it was misspelt")
    return edits.propose(operation.pk, edit, who)


def run(operation: Operation, who: Any, **more: Any) -> Operation:
    lifecycle.start(operation.pk, who, **more)
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def rows_in(queue: str = BILLING) -> dict[str, Any]:
    """Sent edits by message id."""
    with queue_database().read_session() as connection:
        rows = connection.all(f"select headers, body from {queue} where headers like '%%{EDIT_OF}%%'")
    return {h.parse(row.headers)[h.MESSAGE_ID]: row for row in rows}  # type: ignore[misc]


def body_of(archive_id: int) -> bytes:
    with queue_database().read_session() as connection:
        asked = "select body from messages.message_archive where id = %(id)s"
        return bytes(connection.value(asked, {"id": archive_id}))


def test_a_header_is_added_and_the_body_stays_byte_by_byte(editor: User) -> None:
    before = number_in(BILLING)
    operation = run(edited(editor, TENANT), editor)
    assert (operation.count, operation.done, operation.state) == (88, 88, "done")
    assert number_in(BILLING) == before + 88
    rows = rows_in()
    assert len(rows) == 88
    for archive_id in sent(operation):
        old, row = archived(archive_id), rows[edits.sent_as(operation, archive_id)]
        was, now = h.parse(old.headers), h.parse(row.headers)
        assert now["Tenant"] == "blue"
        assert now[EDIT_OF] == was[h.MESSAGE_ID] == old.message_id
        assert now[h.CONVERSATION_ID] == was[h.CONVERSATION_ID]
        assert not any(name.startswith(h.FAILURE_PREFIXES) for name in now)
        assert bytes(row.body) == body_of(archive_id)
        assert old.state == "retried"
    assert events_of(operation.pk) == 88


def test_a_field_is_set_and_nothing_else_of_the_body(editor: User) -> None:
    sample = dead(1, exception=REFUSED)[0]
    was = json.loads(body_of(sample.id).removeprefix(BOM))
    name = next(each for each, value in was.items() if isinstance(value, str))
    operation = run(edited(editor, MessageEdit("field", name, "set", "2026-1")), editor)
    rows = rows_in()
    assert operation.done == len(rows) == 88
    body = bytes(rows[edits.sent_as(operation, sample.id)].body)
    assert json.loads(body.removeprefix(BOM)) == {**was, name: "2026-1"}
    old = body_of(sample.id)
    start = next(each for each in range(len(old)) if old[each] != body[each])
    tail = next(each for each in range(1, len(old)) if old[-each] != body[-each])
    assert old[start : len(old) - tail + 1] in json.dumps(was[name]).encode(), "only its value differs"


def test_messages_without_the_header_stay_dead(editor: User) -> None:
    operation = run(edited(editor, MessageEdit("header", "Tenant", "set", "blue")), editor)
    assert (operation.done, operation.skipped, operation.failed) == (0, 88, 0)
    with queue_database().read_session() as connection:
        assert {item.why for item in queries.not_done(connection, operation.pk)} == {"It has no header Tenant."}
    assert len(dead(100, exception=REFUSED)) == 88
    assert not rows_in()


def test_the_look_says_what_the_act_does(editor: User) -> None:
    operation = edited(editor, None)
    some = dead(2, exception=REFUSED)
    with queue_database().write_session() as connection:
        change = "update messages.message_archive set body = %(body)s where id = %(id)s"
        connection.run(change, {"id": some[0].id, "body": b"{'no json"})
        connection.run(change, {"id": some[1].id, "body": b'{"Other": 1}'})
    name = next(iter(json.loads(body_of(dead(3, exception=REFUSED)[2].id).removeprefix(BOM))))
    edit = MessageEdit("field", name, "set", "2026-1")
    with queue_database().read_session() as connection:
        found = edits.look(connection, operation, edit, content_access.of(editor))
    assert found.counts == {"changed": 86, "lacks": 1, "unread": 1}
    assert found.whys == {"Its body is no JSON.": 1}
    assert len(found.samples) == 3
    operation = run(edits.propose(operation.pk, edit, editor), editor)
    assert (operation.done, operation.skipped, operation.failed) == (86, 1, 1)


def test_audit_has_the_edit_and_hides_values_without_the_read_right(editor: User, viewer: User) -> None:
    operation = run(edited(editor, MessageEdit("header", "Tenant", "replace", "blue", "red")), editor)
    entry = AuditEntry.objects.get(operation_id=operation.pk, verb="retry")
    assert entry.before == {"edit": {"header": "Tenant", "value": "red"}}
    assert entry.after["edit"] == {"header": "Tenant", "way": "replace", "value": "blue", "json": False}  # type: ignore[index]
    hidden = content_access.of(viewer).entry(entry)
    assert "red" not in str(hidden.before)
    assert "blue" not in str(hidden.after)
    assert content_access.of(editor).entry(entry) is entry


def test_locked_headers_and_bad_paths_are_refused(editor: User) -> None:
    operation = edited(editor, None)
    for edit, why in (
        (MessageEdit("header", h.MESSAGE_ID, "set", "x"), "read by programs"),
        (MessageEdit("header", "A\nB", "set", "x"), "Name the header"),
        (MessageEdit("header", "Tenant", "set", "two\nlines"), "one line"),
        (MessageEdit("field", "a..b", "set", "x"), "no path"),
        (MessageEdit("field", "a", "set", "x", is_json=True), "no JSON value"),
        (MessageEdit("field", "a", "replace", "1", "[1]", is_json=True), "not compared"),
        (MessageEdit("field", "a[0]", "add", "x"), "never added"),
    ):
        with pytest.raises(OperationRefused, match=why):
            edits.propose(operation.pk, edit, editor)
    operation.refresh_from_db()
    assert operation.edit is None


def test_edit_needs_the_read_right_and_an_unstarted_operation(editor: User, ana: User) -> None:
    operation = edited(editor, None)
    with pytest.raises(OperationNotAllowed, match="read"):
        edits.propose(operation.pk, TENANT, ana)
    run(operation, editor)
    with pytest.raises(AlreadyDecided, match="not started"):
        edits.propose(operation.pk, TENANT, editor)


def test_an_edit_that_was_set_anew_is_not_started_unseen(editor: User) -> None:
    operation = edited(editor, TENANT)
    looked_at = edits.seen(operation)
    edits.propose(operation.pk, MessageEdit("header", "Tenant", "add", "green"), editor)
    with pytest.raises(AlreadyDecided, match="since you looked"):
        lifecycle.start(operation.pk, editor, edit=looked_at)
    operation.refresh_from_db()
    assert operation.state == "frozen"


def test_masked_header_is_neither_compared_nor_changed(editor: User) -> None:
    MaskingRule.objects.create(name="tenants", kind="header", pattern="Tenant", types=[])
    operation = run(edited(editor, TENANT), editor)
    assert (operation.done, operation.failed) == (88, 0), "there was none yet"
    with queue_database().write_session() as connection:
        headers = "replace(headers, '{', '{\"Tenant\":\"red\",')"
        connection.run(f"update messages.message_archive set headers = {headers} where state = 'dead'")
    operation = edited(editor, MessageEdit("header", "Tenant", "replace", "blue", "red"), state="dead")
    with queue_database().read_session() as connection:
        found = edits.look(connection, operation, edits.of(operation).edit, content_access.of(editor))  # type: ignore[union-attr]
    assert set(found.counts) == {"unread"}
    operation = run(operation, editor)
    assert (operation.done, operation.failed) == (0, operation.count)


def test_edited_retry_cannot_be_called_back(editor: User) -> None:
    operation = run(edited(editor, TENANT), editor)
    with pytest.raises(OperationRefused, match="new messages wait there"):
        call_back.prepare(operation.pk, editor, "console")
    assert call_back.waiting(operation).number == 0


def test_staged_edit_knows_the_outcome_of_each(editor: User) -> None:
    """An edited message has a new id; its death is found by that id."""
    operation = edited(editor, TENANT)
    operation = lifecycle.start(operation.pk, editor, planned=Planned(try_first=5, **CALM))
    clock = Clock()
    look(operation, clock)
    ids = sent(operation)
    assert len(ids) == 5
    with queue_database().write_session() as connection:
        assert succeed(connection, ids[0])
    died_of_the_same(operation, ids[1])
    look(operation, clock)
    found = classes(operation)
    assert (found["succeeded"], found["same"]) == (1, 1)
    assert plan_of(operation).operation.state == "stopped"


def died_of_the_same(operation: Operation, archive_id: int) -> None:
    die(
        operation,
        [archive_id],
        message_id=edits.sent_as(operation, archive_id),
        edit_of=archived(archive_id).message_id,
    )


@pytest.mark.parametrize(
    ("raw", "edit", "after"),
    [
        (b'{"a":1.50,\r\n"b":"x"}\r\n', MessageEdit("field", "b", "set", "y"), b'{"a":1.50,\r\n"b":"y"}\r\n'),
        (BOM + b'{"b":"x"}', MessageEdit("field", "b", "set", "y"), BOM + b'{"b":"y"}'),
        (b'{"b":"\\u00e9"}', MessageEdit("field", "b", "set", "\xe8"), b'{"b":"\\u00e8"}'),
        ('{"a":"é","b":"x"}'.encode(), MessageEdit("field", "b", "set", "ü"), '{"a":"é","b":"ü"}'.encode()),
        (b'{"a":9007199254740993,"b":0}', ONE, b'{"a":9007199254740993,"b":1}'),
        (b'{"a":1,"a":2,"b":"x"}', MessageEdit("field", "b", "remove"), b'{"a":1,"a":2}'),
    ],
)  # fmt: skip
def test_bytes_beside_the_field_are_as_they_were(raw: bytes, edit: MessageEdit, after: bytes) -> None:
    found = of_body(edit, {}, raw, "application/json")
    assert isinstance(found, Edited)
    assert found.body == after


@pytest.mark.parametrize(
    ("raw", "content_type", "why"),
    [
        (None, None, "NULL"),
        ('{"b":"x"}'.encode("utf-16"), "application/json", "no UTF-8"),
        (b'{"b":"x"}', "application/json; charset=iso-8859-1", "iso-8859-1"),
        (b"<b>x</b>", "text/xml", "no JSON"),
        (b'{"b":"x","b":"y"}', None, "twice"),
        (b'{"a":"' + b"x" * 500_000 + b'","b":"x"}', None, "more than 500,000 bytes"),
    ],
)
def test_bodies_that_cannot_be_read_are_left(raw: bytes | None, content_type: str | None, why: str) -> None:
    found = of_body(MessageEdit("field", "b", "set", "y"), {}, raw, content_type)
    assert isinstance(found, NotEdited)
    assert why in found.why
    assert found.result == "failed"


@pytest.mark.parametrize(
    ("kind", "edit", "raw", "why"),
    [
        ("lease", TENANT, None, "has no headers"),
        ("lease", ONE, None, "more than 500,000 bytes"),
        ("lease", ONE, b"[1]", "has no b"),
        ("control", ONE, None, "Only messages of queues"),
    ],
)
def test_message_without_the_part_is_not_edited(kind: str, edit: MessageEdit, raw: bytes | None, why: str) -> None:
    row = type("Row", (), {"kind": kind, "headers": None, "id": 1, "body_bytes": None, "message_type": None})
    found = ManyEdits(edit, "", lambda *_: "").of_one(row, raw)
    assert isinstance(found, NotEdited)
    assert why in found.why


def test_the_database_tells_the_new_id_as_we_do() -> None:
    from pgqueue_admin.dialects.postgresql import postgresql

    sql = postgresql().operation.edited_id.text.replace("a.id", "4711")
    with queue_database().read_session() as connection:
        assert connection.value(f"select {sql}", {"seed": "s"}) == new_id("s", 4711)
