"""Retry, discard and restore: one transaction, guarded, for the named messages only (C4, wire 8.3)."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from pgqueue_admin.archive import crossings, dead_messages, store
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import RETRIED_FROM, ArchivedMessage, ArchiveFilter, retried_from
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import channel
from pgqueue_admin.transport.wire import headers as h
from tests.archive.conftest import ERROR
from tests.explain import executed
from tests.row_filtering_trigger import leaving_out
from tests.waiting import gathered

REFUSED = "Shop.Billing.PaymentGateway+RefusedException"
BILLING = '"public"."Billing"'
Connect = Callable[..., Connection]


class Stop(Exception):
    pass


def newest(connection: Connection, **filter: Any) -> ArchivedMessage:
    return store.page(connection, ArchiveFilter(**filter), limit=1).messages[0]


def retried_row(connection: Connection) -> Any:
    return connection.one(f"select id, expires, headers, body from {BILLING} order by seq desc limit 1")


def events(connection: Connection, archive_id: int) -> list[tuple[Any, ...]]:
    return [(e.who, e.verb, e.operation, e.target) for e in store.events(connection, archive_id)]


def test_the_catalog_is_asked_once_for_each_queue_and_not_for_each_message(ingested: Connection) -> None:
    ids = [message.id for message in store.page(ingested, ArchiveFilter(), limit=110).messages]
    hold = postgresql().archive.hold(is_queue=postgresql().archive.is_queue, **crossings.on_their_way(ingested))
    few, many = (executed(ingested, hold, {"ids": ids[:number]}).blocks for number in (10, 110))
    assert (many - few) / 100 < 12, "blocks that one more message touches"


def test_retry_notifies_our_receiver_once_on_commit(
    ingested: Connection, connect: Connect, archived_database: str
) -> None:
    billing, sales = Address("public", "Billing"), Address("public", "Sales")
    ears, ids = connect(archived_database), [message.id for message in store.page(ingested, ArchiveFilter()).messages]
    ears.listen(*(channel(postgresql(), queue) for queue in (billing, sales)))
    with suppress(Stop), ingested.transaction():
        dead_messages.retry(ingested, ids[:3], "ana", ours=lambda address: True)
        raise Stop
    outcomes = dead_messages.retry(ingested, ids, "ana", ours=lambda address: address == billing)
    assert len([each for each in outcomes if each.target == BILLING]) > 1
    assert {each.target for each in outcomes} > {BILLING}, "others were retried too"
    ingested.notify(channel(postgresql(), sales), "the end")
    heard = gathered(lambda: ears.notifications(0.1), lambda heard: bool(heard) and heard[-1].payload == "the end")
    assert heard[:-1] == [(channel(postgresql(), billing), "")]


def test_a_retried_message_lies_in_its_queue_as_it_was_sent(ingested: Connection) -> None:
    before = ingested.value(f"select count(*) from {BILLING}")
    dead = newest(ingested, exception=REFUSED)
    body = store.body(ingested, dead.id)
    [came] = dead_messages.retry(ingested, [dead.id], "ana", 7)

    assert ingested.value(f"select count(*) from {BILLING}") == before + 1
    row, archived = retried_row(ingested), store.get(ingested, dead.id)
    assert (came.archive_id, came.result, came.target, came.sent_as) == (dead.id, "done", BILLING, str(row.id))
    assert archived
    assert body
    original, sent = h.parse(archived.headers), h.parse(row.headers)
    assert sent == h.strip_failure(original)
    assert not [name for name in sent if name.startswith(h.FAILURE_PREFIXES)]
    assert sent[h.MESSAGE_ID] == dead.message_id
    assert (row.body, row.expires) == (body.content, None)
    assert row.id != archived.row_id
    assert (archived.state, archived.resolved_by, archived.operation) == ("retried", "ana", 7)
    assert events(ingested, dead.id) == [("ana", "retried", 7, BILLING)]


def test_the_second_retry_is_told_who_and_when(ingested: Connection) -> None:
    dead = newest(ingested, exception=REFUSED)
    dead_messages.retry(ingested, [dead.id], "Tomas Berg")
    before = ingested.value(f"select count(*) from {BILLING}")
    [second] = dead_messages.retry(ingested, [dead.id], "ana")
    archived = store.get(ingested, dead.id)
    assert archived
    assert (second.result, second.previous_actor, second.previous_at) == ("skipped", "Tomas Berg", archived.resolved_at)
    assert second.why == f"It was retried by Tomas Berg at {archived.resolved_at:%Y-%m-%d %H:%M:%S} UTC."
    assert ingested.value(f"select count(*) from {BILLING}") == before
    assert len(events(ingested, dead.id)) == 1


def test_two_clicks_at_once_send_once(archived_database: str, ingested: Connection, connect: Connect) -> None:
    ids = [m.id for m in store.page(ingested, ArchiveFilter(exception=REFUSED), limit=20).messages]
    before = ingested.value(f"select count(*) from {BILLING}")
    results: list[Any] = []
    people = [(connect(archived_database), who, order) for who, order in (("ana", 1), ("bob", -1))]
    threads = [
        threading.Thread(target=lambda c=c, w=w, o=o: results.append(dead_messages.retry(c, ids[::o], w)))
        for c, w, o in people
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(",".join({outcome.result for outcome in result}) for result in results) == ["done", "skipped"]
    assert ingested.value(f"select count(*) from {BILLING}") == before + 20


def test_failed_forwards_to_missing_queues_say_so(ingested: Connection) -> None:
    """Wire 3: FailedQ of a failed forward is the raw destination, which names a queue that does not exist."""
    forwards = store.page(ingested, ArchiveFilter(exception="QueueNotFoundException"), limit=100).messages
    assert len(forwards) == 27
    outcomes = dead_messages.retry(ingested, [m.id for m in forwards], "ana")
    assert {o.result for o in outcomes} == {"failed"}
    assert (
        {o.why for o in outcomes}
        == {m.why_no_retry for m in forwards}
        == {
            "Its queue is gone: there is no queue table 'Newsletter' in schema 'public'.",
            "Its queue is gone: there is no queue table 'Reminders' in schema 'Decommissioned'.",
        }
    )
    assert store.count(ingested, ArchiveFilter(exception="QueueNotFoundException"), 100).number == 27


def test_once_its_queue_is_back_it_can_be_retried(ingested: Connection) -> None:
    ingested.run(postgresql().queue.create(table=Address("public", "Newsletter")))
    dead = newest(ingested, queue='"public"."Newsletter"')
    assert dead.why_no_retry is None
    assert dead_messages.retry(ingested, [dead.id], "ana")[0].result == "done"


@pytest.mark.parametrize("table", ["SubscriptionRouting", "NotAQueue", "Sales.Delayed", "Sales_OrderPolicy"])
def test_only_queue_tables_are_written_to(recorded: Connection, table: str) -> None:
    """The address came with a message: a sender must not choose which table is written to."""
    send_error(recorded, {h.FAILED_Q: f'"public"."{table}"', h.MESSAGE_ID: "x"})
    ingest(recorded, ERROR, 5000)
    dead = newest(recorded, message_id="x")
    assert dead.why_no_retry == f"Its queue is gone: there is no queue table '{table}' in schema 'public'."
    assert dead_messages.retry(recorded, [dead.id], "ana")[0].result == "failed"


def test_target_refused_by_the_judge_is_not_written_to(ingested: Connection) -> None:
    dead = newest(ingested, queue='"Legacy"."Invoicing"')
    [outcome] = dead_messages.retry(ingested, [dead.id], "ana", judge=lambda _, targets: dict.fromkeys(targets, "No."))
    assert (outcome.result, outcome.why) == ("failed", "No.")
    assert newest(ingested, queue='"Legacy"."Invoicing"').state == "dead"


def test_a_null_body_is_not_put_back(recorded: Connection) -> None:
    """Wire 2.6: a null body would stop the endpoint."""
    send_error(recorded, {h.FAILED_Q: BILLING, h.MESSAGE_ID: "x"}, body=None)
    ingest(recorded, ERROR, 5000)
    [outcome] = dead_messages.retry(recorded, [newest(recorded, message_id="x").id], "ana")
    assert outcome.why == "Its body is NULL: put back, it would wedge the queue."


def test_headers_that_cannot_be_read_fail_their_own_message_only(ingested: Connection) -> None:
    """Our readers archive no such row as retryable; other programs may."""
    odd, billing = newest(ingested, queue='"public"."Sales"'), newest(ingested, exception=REFUSED)
    ingested.run("update messages.message_archive set headers = '[1]' where id = %(id)s", {"id": odd.id})
    outcomes = dead_messages.retry(ingested, [odd.id, billing.id], "ana")
    assert [o.result for o in outcomes] == ["failed", "done"]
    assert "the headers are an array, not an object" in str(outcomes[0].why)


def test_refusing_queue_fails_only_its_own_retries(ingested: Connection) -> None:
    ingested.run('alter table "public"."Sales" add constraint closed check (headers = \'\') not valid')
    sales, billing = newest(ingested, queue='"public"."Sales"'), newest(ingested, exception=REFUSED)
    outcomes = dead_messages.retry(ingested, [sales.id, billing.id], "ana")
    assert [o.result for o in outcomes] == ["failed", "done"]
    assert "closed" in str(outcomes[0].why)
    assert newest(ingested, queue='"public"."Sales"').id == sales.id


def test_message_dropped_by_a_trigger_stays_dead(ingested: Connection) -> None:
    """A deduplicating trigger raises no error: marked as retried, the message would be lost."""
    first, second = store.page(ingested, ArchiveFilter(exception=REFUSED), limit=2).messages
    leaving_out(ingested, BILLING, "insert", str(first.message_id))
    before = ingested.value(f"select count(*) from {BILLING}")
    sales = newest(ingested, queue='"public"."Sales"')
    outcomes = dead_messages.retry(ingested, [sales.id, first.id, second.id], "ana")
    assert [o.result for o in outcomes] == ["done", "failed", "failed"]
    assert "left rows out. It took 1 of 2" in str(outcomes[1].why)
    assert ingested.value(f"select count(*) from {BILLING}") == before
    assert [m.id for m in store.page(ingested, ArchiveFilter(exception=REFUSED), limit=2).messages] == [
        first.id,
        second.id,
    ]
    assert dead_messages.retry(ingested, [second.id], "ana")[0].result == "done"


def test_message_dropped_by_a_database_rule_stays_dead(ingested: Connection) -> None:
    ingested.run(f"create rule nothing as on insert to {BILLING} do instead nothing")
    assert dead_messages.retry(ingested, [newest(ingested, exception=REFUSED).id], "ana")[0].result == "failed"


def test_a_queue_whose_trigger_speaks_of_another_server_fails_its_own_only(ingested: Connection) -> None:
    """Its trigger fails to reach a dblink peer; this database still answers."""
    ingested.run("""create function public.peer() returns trigger language plpgsql as $$
        begin raise 'could not establish connection' using errcode = '08001'; end $$""")
    ingested.run('create trigger peer before insert on "Sales" for each row execute function public.peer()')
    sales, billing = newest(ingested, queue='"public"."Sales"'), newest(ingested, exception=REFUSED)
    outcomes = dead_messages.retry(ingested, [sales.id, billing.id], "ana")
    assert [o.result for o in outcomes] == ["failed", "done"]
    assert "did not take it: The database refused the statement. could not establish" in str(outcomes[0].why)


def test_retry_to_our_endpoint_is_marked_succeeded_once(ingested: Connection) -> None:
    dead = newest(ingested, exception=REFUSED)
    dead_messages.retry(ingested, [dead.id], "ana", ours=lambda address: address.table == "Billing")
    sent = h.parse(retried_row(ingested).headers)
    said, message_id, billing = retried_from(sent[RETRIED_FROM]), str(sent[h.MESSAGE_ID]), Address("public", "Billing")
    assert said
    assert said.archive_id == dead.id
    assert not store.succeeded(ingested, said, "another message's id", billing, "Billing")
    assert not store.succeeded(ingested, said, message_id, Address("public", "Sales"), "Billing")
    assert not store.succeeded(ingested, said._replace(token=uuid4()), message_id, billing, "Billing")
    assert store.succeeded(ingested, said, message_id, billing, "Billing")
    assert not store.succeeded(ingested, said, message_id, billing, "Billing")
    [outcome] = dead_messages.retry(ingested, [dead.id], "bob")
    archived = store.get(ingested, dead.id)
    assert archived
    assert outcome.why == f"It was retried by ana at {archived.resolved_at:%Y-%m-%d %H:%M:%S} UTC and succeeded."


def test_discarded_ones_are_kept_and_come_back(ingested: Connection) -> None:
    dead = newest(ingested, exception=REFUSED)
    assert [o.result for o in dead_messages.discard(ingested, [dead.id], "ana", 8)] == ["done"]
    assert [o.result for o in dead_messages.retry(ingested, [dead.id], "bob")] == ["skipped"]
    assert [o.result for o in dead_messages.discard(ingested, [dead.id], "bob")] == ["skipped"]
    assert [o.result for o in dead_messages.restore(ingested, [dead.id], "bob", 9)] == ["done"]
    [again] = dead_messages.restore(ingested, [dead.id], "bob")
    assert (again.result, again.previous_actor) == ("skipped", "bob")
    assert str(again.why).startswith("It was restored by bob at ")
    assert events(ingested, dead.id) == [("ana", "discarded", 8, None), ("bob", "restored", 9, None)]
    assert [o.result for o in dead_messages.retry(ingested, [dead.id], "ana")] == ["done"]


def test_unknown_ids_and_controls_are_answered(ingested: Connection) -> None:
    control = newest(ingested, state="", kind="control")
    outcomes = dead_messages.retry(ingested, [999_999, control.id, 999_999], "ana")
    assert [(o.archive_id, o.result, o.why) for o in outcomes] == [
        (999_999, "failed", "It is no longer in the archive."),
        (control.id, "skipped", "It did not die."),
    ]


def test_mark_and_row_are_one_transaction(ingested: Connection) -> None:
    dead = newest(ingested, exception=REFUSED)
    before = ingested.value(f"select count(*) from {BILLING}")
    with suppress(Stop), ingested.transaction():
        dead_messages.retry(ingested, [dead.id], "ana")
        raise Stop
    assert newest(ingested, exception=REFUSED).state == "dead"
    assert ingested.value(f"select count(*) from {BILLING}") == before
    assert events(ingested, dead.id) == []


def test_an_original_listener_still_hears_archive_ids(
    engine_database: str, engine: Connection, connect: Connect
) -> None:
    """A2: success is silent, other results notify the archive id, and a rollback notifies nothing."""
    listener = connect(engine_database)
    listener.listen("dead_message", "new_message")
    archive = "insert into messages.message_archive (created_at, message, result, handled_by)"
    archive += " values (now(), '1', %s, 'worker')"
    with suppress(Stop), engine.transaction():
        engine.run(archive, ["failed"])
        raise Stop
    for result in ("success", "failed", "rejected", "lock_expired"):
        engine.run(archive, [result])
    engine.run("insert into messages.message (message) values ('1')")
    heard = gathered(lambda: listener.notifications(1), lambda heard: len(heard) >= 4)
    ids = [str(row[0]) for row in engine.all("select id from messages.message_dead order by id")]
    assert heard == [*[("dead_message", each) for each in ids], ("new_message", "1")]


def send_error(connection: Connection, headers: dict[str, Any], body: bytes | None = b"{}") -> None:
    connection.run(
        'insert into "public"."error" (id, headers, body) values (gen_random_uuid(), %(headers)s, %(body)s)',
        {"headers": json.dumps(headers), "body": body},
    )


def test_a_body_of_50_mb_goes_in_and_out_unchanged(ingested: Connection) -> None:
    """The body never passes through this process: it is archived, cut for a page and returned inside the database."""
    body = "decode(repeat('00ff', 25000000), 'hex')"
    headers = json.dumps({h.FAILED_Q: BILLING, h.MESSAGE_ID: "big"})
    sent = 'insert into "public"."error" (id, headers, body)'
    ingested.run(f"{sent} values (gen_random_uuid(), %(headers)s, {body})", {"headers": headers})
    assert ingest(ingested, ERROR).moved == 1
    dead = newest(ingested, message_id="big")
    assert store.body(ingested, dead.id, 49_999_998, 10) == (50_000_000, b"\x00\xff")
    assert dead_messages.retry(ingested, [dead.id], "ana")[0].result == "done"
    same = f"select md5(body) = md5({body}) from {BILLING} order by seq desc limit 1"
    assert ingested.value(same)
