"""Ticked lease messages: confirmed once, then acted on only if the lock is the one seen; with scripts off."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry

LIST = "/queues/messages/message/messages/"
ACTS = f"{LIST}locks/"
HOSTILE = "<script>alert(1)</script>\u202e{{ x }}"

pytestmark = pytest.mark.usefixtures("lease_schema")


def ticks(client: Client) -> list[str]:
    return [unescape(each) for each in re.findall(r'name="id" value="([^"]+)"', client.get(LIST).content.decode())]


def asked(client: Client, status: int = 200, **fields: Any) -> str:
    answer = client.post(ACTS, {"next": LIST, **fields})
    assert answer.status_code == status
    return unescape(re.sub(r"\s+", " ", answer.content.decode())).replace("\u00a0", " ")


def done(client: Client, **fields: Any) -> str:
    """The text of the list after the act."""
    answer = client.post(ACTS, {"next": LIST, "sure": "yes", **fields}, follow=True)
    assert answer.redirect_chain == [(LIST, 303)]
    return unescape(re.sub(r"<[^>]+>|\s+", " ", answer.content.decode())).replace("\u00a0", " ")


def test_ticked_locks_are_released_and_what_changed_meanwhile_is_named(
    queue: LeaseQueue, as_operator: Client, console_database: str, connect: Callable[..., Connection]
) -> None:
    queue.publish_many([{"kind": HOSTILE}, *range(4)])
    taken = queue.claim(5, lock_for=600)
    ids = ticks(as_operator)
    assert [each.partition(":")[0] for each in ids] == ["1", "2", "3", "4", "5"]
    queue.finish(taken[1])
    queue.release(taken[2])
    (relocked,) = queue.claim(1, lock_for=600)
    question = asked(as_operator, act="release", id=ids)
    for said in ("Release the locks on 5 messages of message in", "nothing done yet", "Release 5", "Leave them there"):
        assert said in question
    for said in ("has ended since you looked", "another lock than you saw", "may claim it at once"):
        assert said in question
    plain = as_operator.post(ACTS, {"act": "release", "id": ids}).content.decode()
    assert "<script>alert" not in plain
    assert "\u202e" not in plain
    session = connect(console_database)
    assert session.value("select count(*) from messages.message where lock_expires_at is null") == 0
    with session.transaction():
        session.run("select from messages.message where id = 5 for update")
        said = done(as_operator, act="release", id=ids, reason="stuck")
    assert "The locks on 2 messages are off" in said
    assert "1 of 5 was not released: 2. It is no longer in the queue: it ended meanwhile." in said
    assert "1 of 5 was not released: 3. It was locked anew meanwhile" in said
    assert "1 of 5 was not released: 5. Somebody is changing it at this moment." in said
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.who, entry.count, entry.reason) == ("release", "ana", 2, "stuck")
    assert entry.after == {"ids": [1, 4], "skipped": [2, 3, 5]}
    assert queue.finish(relocked)


@pytest.mark.parametrize("result", ["failed", "rejected"])
def test_ticked_messages_end_with_a_reason_and_one_entry(queue: LeaseQueue, as_operator: Client, result: str) -> None:
    queue.publish_many(range(3))
    ids = ticks(as_operator)
    assert "a reason is asked for" in asked(as_operator, 422, act=result, id=ids, sure="yes")
    assert f"3 messages ended as {result}" in done(as_operator, act=result, id=ids, reason="poisoned")
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.count, entry.reason) == ("end", 3, "poisoned")
    assert entry.after == {"result": result, "ids": [1, 2, 3], "archive_ids": [1, 2, 3]}
    assert queue.claim(9) == []
    assert "3 of 3 were not ended: 1, 2, 3." in done(as_operator, act=result, id=ids, reason="again")
    assert AuditEntry.objects.count() == 1, "nothing was done: no entry"


def test_many_need_a_reason_and_a_page_is_the_most(queue: LeaseQueue, as_operator: Client) -> None:
    queue.publish_many(range(21))
    queue.claim(21, lock_for=600)
    assert "a reason is asked for" in asked(as_operator, 422, act="release", id=ticks(as_operator), sure="yes")
    assert "at most 50 messages" in done(as_operator, act="release", id=[f"{number}:" for number in range(1, 52)])
    assert "no message was ticked" in done(as_operator, act="release", id=["nonsense", "1", "1:<x>"])
    assert as_operator.post(ACTS, {"act": "burn"}).status_code == 404
    assert AuditEntry.objects.count() == 0


def test_a_viewer_sees_why_not_and_a_copy_offers_nothing(
    queue: LeaseQueue, as_viewer: Client, console_database: str, connect: Callable[..., Connection]
) -> None:
    queue.publish(1)
    page = as_viewer.get(LIST).content.decode()
    assert "Release: needs the right" in page
    assert "selection.js" in page
    assert "needs the right" in asked(as_viewer, 403, act="failed", id=ticks(as_viewer), sure="yes", reason="x")
    connect(console_database).run("create table public.copied (like messages.message including all)")
    connect(console_database).run("insert into public.copied (message) values ('1')")
    copy = as_viewer.get("/queues/public/copied/messages/").content.decode()
    assert "only has the shape of the lease queue" in copy
    assert 'name="id"' not in copy
