"""The lease queue on pages: listed like other queues, its messages, and acts on them by hand."""

import os
import re
import socket
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.services import endpoints
from pgqueue_admin.services.operations import runner
from tests.console.sampled import sample
from tests.console.test_payload_columns import keeping
from tests.older_schema import set_back

Connect = Callable[..., Connection]
PATH = "/queues/messages/message/"
ME = f"thumbs, {socket.gethostname()}, pid {os.getpid()}"
HOSTILE = "<script>alert(1)</script>\u202e{{ x }}"

pytestmark = pytest.mark.usefixtures("lease_schema")


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).replace("\u00a0", " ").split())


def full(queue: LeaseQueue) -> tuple[int, int, int]:
    """One waiting, one locked and one released for later."""
    queue.publish_many([{"kind": "render", "asset": f"sku/{name}.png", "w": 8} for name in "abc"])
    first, second = queue.claim(2, lock_for=600)
    queue.release(second, after=3600)
    return queue.publish({"kind": "purge", "asset": "/img/*"}), first.id, second.id


def test_lease_queue_is_listed_and_its_page_shows_its_states(queue: LeaseQueue, as_viewer: Client) -> None:
    full(queue)
    sample(2)
    assert "message lease, messages" in text(as_viewer, "/queues/?q=kind:lease")
    said = text(as_viewer, PATH)
    for word in ("Waiting 2 counted", "Locked 1 until their locks end", "Released for later 1", "Expired locks 0"):
        assert word in said
    assert "lease queue" in said
    looked = text(as_viewer, f"{PATH}ends/")
    assert "render 1 sku/a.png 8 locked, 9 min" in looked
    assert ME in looked
    assert "purge 4 /img/*" in looked
    assert "How they ended" in looked
    assert text(as_viewer, f"{PATH}?ends=1").count("sku/a.png") == 1


def test_columns_are_chosen_and_kept_for_a_kind(queue: LeaseQueue, as_viewer: Client) -> None:
    queue.publish({"kind": "Pay", "a": 1, "amount": 5, "card": "A", "deep": {"x": 1}})
    queue.publish({"kind": "Big", **{f"n{number}": number for number in range(9)}, "some": "x" * 50})
    sample()
    address = f"{PATH}messages/?order=number"
    assert "Pay 1 1 A waiting" in text(as_viewer, address)
    said = text(as_viewer, f"{address}&cols=card&cols=some")
    assert "Pay 1 A waiting" in said
    assert "Big 2 not read not read waiting" in said  # the first eight fields of its document
    as_viewer.post("/columns/", keeping(as_viewer.get(f"{address}&cols=card").content.decode()))
    assert "Pay 1 A" in text(as_viewer, address)


def test_how_they_ended_leads_to_the_archive(queue: LeaseQueue, as_viewer: Client) -> None:
    queue.publish_many(range(3))
    for lease, result in zip(queue.claim(3), ("success", "failed", "rejected"), strict=True):
        queue.finish(lease, result)  # type: ignore[arg-type]
    sample()
    page = as_viewer.get(f"{PATH}ends/").content.decode()
    assert "In the last hour, 3." in text(as_viewer, f"{PATH}ends/")
    (link,) = re.findall(r'href="(/archive/[^"]*rejected)"', page)
    assert "Archive, 1 match" in text(as_viewer, unescape(link))


@pytest.mark.parametrize("order", ["number", "newest", "locked", "waiting", "nonsense"])
def test_its_messages_in_each_order(queue: LeaseQueue, as_viewer: Client, order: str) -> None:
    waits, locked, later = full(queue)
    sample()
    page = as_viewer.get(f"{PATH}messages/?order={order}").content.decode()
    shown = [int(number) for number in re.findall(r'messages/(\d+)/"', page)]
    assert shown == {
        "newest": [waits, 3, later, locked], "locked": [locked], "waiting": [3, waits, later],
    }.get(order, [locked, later, 3, waits])  # fmt: skip


def test_pages_go_on_by_number(queue: LeaseQueue, as_viewer: Client) -> None:
    queue.publish_many(range(120))
    found: list[int] = []
    path = f"{PATH}messages/?order=newest"
    while path:
        page = as_viewer.get(path).content.decode()
        found += map(int, re.findall(r'messages/(\d+)/"', page))
        onward = re.search(r'rel="next" href="([^"]+)"', page)
        path = f"{PATH}messages/{unescape(onward[1])}" if onward else ""
    assert found == list(range(120, 0, -1))


def test_an_empty_queue_teaches(as_viewer: Client) -> None:
    assert "An insert into it publishes a message" in text(as_viewer, f"{PATH}messages/")
    assert "No message is locked" in text(as_viewer, f"{PATH}messages/?order=locked")


def test_foreign_text_is_escaped(queue: LeaseQueue, as_operator: Client) -> None:
    number = queue.publish({"kind": HOSTILE, HOSTILE: HOSTILE})
    queue.claim()
    sample()
    for path in (f"{PATH}ends/", f"{PATH}messages/", f"{PATH}messages/{number}/"):
        page = as_operator.get(path).content.decode()
        assert "<script>alert" not in page
        assert "\u202e" not in page


@pytest.mark.parametrize("document", [None, [], {}, 1e300, "x", [["raise"]], {"a": {"b": []}}, {"n": 10**40}])
def test_any_document_has_a_page(queue: LeaseQueue, as_viewer: Client, document: Any) -> None:
    number = queue.publish(document)
    for path in (f"{PATH}messages/", f"{PATH}messages/{number}/"):
        assert as_viewer.get(path).status_code == 200


def test_page_of_a_message_shows_its_facts(queue: LeaseQueue, as_viewer: Client) -> None:
    _, locked, _ = full(queue)
    said = text(as_viewer, f"{PATH}messages/{locked}/")
    for word in ("render", "locked, 9 min", f"{ME} by its own word, with its token", '"sku/a.png"', "Attempts 1"):
        assert word in said
    assert "needs the right" in said
    assert "Not in message now" in text(as_viewer, f"{PATH}messages/999999/", 404)


def test_ended_message_is_found_in_the_archive(queue: LeaseQueue, as_viewer: Client) -> None:
    number = queue.publish(1)
    queue.finish(queue.claim()[0], "failed")
    page = as_viewer.get(f"{PATH}messages/{number}/")
    assert page.status_code == 404
    assert "/archive/1/" in page.content.decode()


def test_a_test_message_is_published(queue: LeaseQueue, as_operator: Client) -> None:
    answer = as_operator.post(f"{PATH}publish/", {"message": '{"kind": "render"}', "reason": "try it"})
    assert (answer.status_code, answer["Location"]) == (303, PATH)
    (lease,) = queue.claim()
    assert lease.message == {"kind": "render"}
    assert AuditEntry.objects.get().reason == "try it"


def test_refused_document_is_kept_in_the_form(as_operator: Client) -> None:
    answer = as_operator.post(f"{PATH}publish/", {"message": '{"kind": <b>', "reason": "try it"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "{&quot;kind&quot;: &lt;b&gt;</textarea>" in page
    assert "line 1, column 10" in page
    assert 'value="try it"' in page


def seen_by(client: Client, number: int) -> str:
    return re.findall(r'name="seen" value="([^"]*)"', client.get(f"{PATH}messages/{number}/").content.decode())[0]


def test_a_lock_is_released_from_its_page(queue: LeaseQueue, as_operator: Client) -> None:
    _, locked, _ = full(queue)
    answer = as_operator.post(f"{PATH}messages/{locked}/release/", {"seen": seen_by(as_operator, locked)})
    assert answer["Location"] == PATH
    assert locked in [lease.id for lease in queue.claim(10)]


def test_a_message_is_ended_from_its_page_and_one_taken_meanwhile_is_not(
    queue: LeaseQueue, as_operator: Client
) -> None:
    waits, locked, _ = full(queue)
    asked = {"seen": seen_by(as_operator, waits), "result": "rejected", "reason": "poisoned"}
    as_operator.post(f"{PATH}messages/{waits}/end/", asked)
    said = text(as_operator, "/archive/1/")
    assert "Ended by ana" in said
    answer = as_operator.post(f"{PATH}messages/{locked}/end/", {**asked, "seen": ""}, follow=True)
    assert "locked anew meanwhile" in answer.content.decode()


def test_acts_need_their_right_and_a_post(queue: LeaseQueue, as_viewer: Client) -> None:
    _, locked, _ = full(queue)
    for path in (f"messages/{locked}/release/", f"messages/{locked}/end/"):
        assert as_viewer.get(PATH + path).status_code == 405
        answer = as_viewer.post(PATH + path, {"seen": "", "reason": "x"}, follow=True)
        assert "needs the right" in answer.content.decode()
    assert as_viewer.post(f"{PATH}publish/", {"message": "1"}).status_code == 403
    assert "Publish a test message" not in text(as_viewer, f"{PATH}messages/")
    assert len(queue.claim(10)) == 2


def test_a_schema_that_is_not_watched_is_not_looked_into(queue: LeaseQueue, as_operator: Client, settings: Any) -> None:
    number = queue.publish({"secret": 1})
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    for path in (f"{PATH}messages/", f"{PATH}messages/{number}/"):
        page = as_operator.get(path)
        assert page.status_code == 404
        assert "secret" not in page.content.decode()


def test_a_dead_one_is_retried_from_its_page_and_leads_to_the_new_one(queue: LeaseQueue, as_operator: Client) -> None:
    queue.publish({"kind": "render", "asset": "kettle.png"})
    queue.finish(queue.claim()[0], "failed", "no encoder")
    said = text(as_operator, "/archive/1/")
    for word in (
        '"kettle.png"',
        "Details no encoder",
        "the message, as it was",
        "Handled by thumbs",
        "Retry to message",
    ):
        assert word in said
    assert "Headers" not in said
    as_operator.post("/operations/", {"act": "retry", "id": "1", "at_once": "yes"})
    assert "/queues/messages/message/messages/2/" in as_operator.get("/archive/1/").content.decode()
    assert "archived 1" in text(as_operator, f"{PATH}messages/2/")
    queue.finish(queue.claim()[0])
    said = text(as_operator, "/archive/1/")
    assert "Succeeded in thumbs" in said
    assert "/archive/2/" in as_operator.get(f"{PATH}messages/2/").content.decode()


def test_original_clients_archive_row_has_a_page(as_operator: Client, console_database: str, connect: Connect) -> None:
    connect(console_database).run("""
        insert into messages.message_archive (created_at, message, result, handled_by, details)
        values (now(), '["raise"]', 'failed', 'worker', 'unhandled exception')
    """)
    said = text(as_operator, "/archive/1/")
    for word in ("Handled by worker", "Details unhandled exception", "original clients do not count them", '"raise"'):
        assert word in said
    assert as_operator.get("/archive/").status_code == 200


def test_a_second_ending_says_so_and_leads_to_the_first(
    queue: LeaseQueue, as_operator: Client, console_database: str, connect: Connect
) -> None:
    """A late original worker: its row is not a second message."""
    session = connect(console_database)
    queue.publish(["late"])
    queue.finish(queue.claim()[0], "failed")
    session.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " select created_at, message, 'failed', 'worker' from messages.message_archive"
    )
    said = text(as_operator, "/archive/2/")
    assert "Second ending ended first as archived 1 (an original client ended it again)" in said
    assert "An original client ended it a second time. Retry archived message 1." in said
    assert 'href="/archive/1/"' in as_operator.get("/archive/2/").content.decode()
    assert 'popovertarget="discard"' in as_operator.get("/archive/2/").content.decode()
    assert "Second ending" not in text(as_operator, "/archive/1/")
    for address in ("/archive/?q=", "/archive/?q=result:failed", "/archive/?q=state:dead&sort=-age"):
        listed = as_operator.get(address).content.decode()
        assert listed.count("second ending, after") == 1
        assert 'href="/archive/1/">archived 1</a>' in listed
    set_back(session, 3)
    assert "second ending" not in text(as_operator, "/archive/")


def test_its_document_is_downloaded_whole(queue: LeaseQueue, as_viewer: Client) -> None:
    queue.publish({"text": "ü" * 50_000})
    queue.finish(queue.claim()[0], "failed")
    (link,) = re.findall(r'href="(/archive/1/[^"]+)" download', as_viewer.get("/archive/1/").content.decode())

    answer = as_viewer.get(link)

    async def whole() -> bytes:
        return b"".join([part async for part in answer.streaming_content])  # type: ignore[attr-defined]

    assert async_to_sync(whole)().decode() == '{"text": "' + "ü" * 50_000 + '"}'


def test_a_worker_of_ours_stands_on_its_page_with_its_settings(queue: LeaseQueue, as_viewer: Client) -> None:
    about = {"kind": "lease", "schema": "messages", "table": "message", "desired_processes": 1}
    endpoints.create("thumbs", about, "ana", "command")
    queue.publish(1)
    sample(2)
    said = text(as_viewer, PATH)
    for word in ("Endpoint thumbs", "No process runs", "Lock"):
        assert word in said
    assert "Peek delay" not in said


def test_finder_leads_to_a_lease_message_by_its_id(queue: LeaseQueue, as_viewer: Client, settings: Any) -> None:
    ended, waits = queue.publish_many([1, 2])
    queue.finish(queue.claim()[0], "failed")
    assert as_viewer.get(f"/messages/{waits}/")["Location"] == f"{PATH}messages/{waits}/"
    assert as_viewer.get(f"/messages/{ended}/")["Location"] == "/archive/1/"
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    assert as_viewer.get(f"/messages/{waits}/").status_code == 404


def test_all_that_waits_is_purged_from_its_page(queue: LeaseQueue, as_operator: Client, as_viewer: Client) -> None:
    full(queue)
    sample(2)
    assert 'name="act" value="purge"' in as_operator.get(PATH).content.decode()
    assert 'name="act" value="purge"' not in as_viewer.get(PATH).content.decode()
    frozen = as_operator.post("/operations/", {"act": "purge", "schema": "messages", "table": "message"})
    page = frozen["Location"]
    assert "Purge 3 messages of message" in text(as_operator, page)
    wrong = as_operator.post(f"{page}start/", {"reason": "flood", "count": "4"})
    assert wrong.status_code == 422
    as_operator.post(f"{page}start/", {"reason": "flood", "count": "3"})
    runner.run(Operation.objects.get().pk)
    said = text(as_operator, page)
    assert "3 purged." in said
    assert "Restore all 3…" in said
    assert "Purged from message by ana while it waited." in text(as_operator, "/archive/1/")


def test_a_copy_of_the_table_is_shown_and_offers_no_act(
    queue: LeaseQueue, as_operator: Client, console_database: str, connect: Connect
) -> None:
    number = queue.publish({"kind": "render"})
    session = connect(console_database)
    session.run("create table public.message_copy (like messages.message including all)")
    session.run("insert into public.message_copy select * from messages.message")
    sample(2)
    copy = "/queues/public/message_copy/"
    assert "Publish a test message" not in text(as_operator, f"{copy}messages/")
    assert 'name="act" value="purge"' not in as_operator.get(copy).content.decode()
    assert "only has the shape of the lease queue" in text(as_operator, f"{copy}messages/{number}/")
    answer = as_operator.post(f"{copy}messages/{number}/end/", {"seen": "", "reason": "x"}, follow=True)
    assert "Nothing was ended" in answer.content.decode()
    assert [lease.id for lease in queue.claim(10)] == [number]
