"""Copy as new: a new message with its lineage; the original is unchanged."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import store
from pgqueue_admin.archive.message_copy import ArchivedOne, WaitingOne
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Queue
from pgqueue_admin.services import message_copies
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import BILLING, REFUSED, archived, dead, number_in

QUEUE = Address("public", "Billing")


@pytest.fixture
def session(archived_console: str) -> Iterator[Connection]:
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "acts_allowed": True})
    with postgresql().connect(archived_console, for_handlers=True) as connection:
        yield connection


def sent(session: Connection, message_id: str) -> Any:
    found = session.all(f"select * from {BILLING} where headers like %(id)s", {"id": f"%{message_id}%"})
    return next(row for row in found if h.parse(row.headers)[h.MESSAGE_ID] == message_id)


def test_an_archived_one_goes_out_once_more_and_stays_dead(session: Connection, ana: User) -> None:
    (message,) = dead(1, exception=REFUSED)
    asked = "select * from messages.message_archive where id = %(id)s"
    before = session.one(asked, {"id": message.id})
    assert before is not None
    copy = sent(session, new := message_copies.copy(ArchivedOne(message.id), QUEUE, ana, "console", "lost effects"))
    headers = h.parse(copy.headers)
    assert bytes(copy.body) == bytes(before.body)
    assert (headers[h.RELATED_TO], headers[h.MESSAGE_ID]) == (message.message_id, new)
    assert headers[h.CONVERSATION_ID] == h.parse(before.headers)[h.CONVERSATION_ID]
    assert not [name for name in headers if name.startswith(h.FAILURE_PREFIXES)]
    assert session.one(asked, {"id": message.id}) == before
    assert store.events(session, message.id)[-1].verb == "copied"
    entry = AuditEntry.objects.get(verb="copy")
    assert (entry.who, entry.reason, entry.subject) == ("ana", "lost effects", BILLING)
    assert entry.before == {"copy_of": message.message_id, "archive_id": message.id}
    assert entry.after == {"message_id": new}


def test_a_waiting_one_stays_where_it_is_also_in_somebodys_hand(session: Connection, ana: User) -> None:
    row_id, body = uuid4(), b"\x00\xff<script>"
    put = f"insert into {BILLING} (id, headers, body) values (%(id)s, %(headers)s, %(body)s)"
    session.run(put, {"id": row_id, "headers": '{"NServiceBus.MessageId": "\\u0000x", "Own": "1"}', "body": body})
    before = number_in(BILLING)
    with session.transaction():
        session.run(f"select from {BILLING} where id = %(id)s for update", {"id": row_id})
        new = message_copies.copy(WaitingOne(QUEUE, row_id), QUEUE, ana, "console")
    copy = sent(session, new)
    assert (bytes(copy.body), h.parse(copy.headers)["Own"], copy.id == row_id) == (body, "1", False)
    assert number_in(BILLING) == before + 1


def test_message_that_cannot_be_copied_is_refused_without_a_trace(session: Connection, ana: User, viewer: User) -> None:
    (message,) = dead(1, exception=REFUSED)
    null = uuid4()
    session.run(f"insert into {BILLING} (id, headers) values (%(id)s, '{{}}')", {"id": null})
    before = number_in(BILLING)
    gone: Any = (ArchivedOne(999_999), WaitingOne(QUEUE, UUID(int=1)), WaitingOne(QUEUE, null))
    elsewhere: Any = (WaitingOne(Address("messages", "message"), null), WaitingOne(Address("public", "no"), null))
    for original in (*gone, *elsewhere):
        with pytest.raises(OperationRefused, match="Nothing was sent"):
            message_copies.copy(original, QUEUE, ana, "console")
    for target in (Address("public", "error"), Address("pg_catalog", "pg_class"), Address("public", "nothing")):
        with pytest.raises(OperationRefused, match="Nothing was sent"):
            message_copies.copy(ArchivedOne(message.id), target, ana, "console")
    with pytest.raises(OperationNotAllowed):
        message_copies.copy(ArchivedOne(message.id), QUEUE, viewer, "console")
    assert number_in(BILLING) == before
    assert archived(message.id).state == "dead"
    assert not AuditEntry.objects.filter(verb="copy").exists()
