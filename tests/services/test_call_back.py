"""Sent messages of a retry that still wait return to the dead: exactly those, once, and no receiver waits."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import call_back, dead_messages, edited_retry, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import ArchiveFilter, RetriedFrom
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Operation, Queue
from pgqueue_admin.services import edited_retry as edited_retries
from pgqueue_admin.services import purges, waiting_messages
from pgqueue_admin.services.operations import call_back as acts
from pgqueue_admin.services.operations import (
    edits,
    lifecycle,
    queries,
    runner,
    selection,
    single,
    staged_controls,
    staged_figures,
    staged_retry,
)
from pgqueue_admin.services.operations.errors import EmptySelection, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.plans import Planned
from tests import strangers_code
from tests.archived_messages import BILLING, OPERATOR, REFUSED, archived, dead, number_in, person
from tests.services.test_killed import run_and_kill
from tests.staged_retries import CALM, Clock, classes, go_by, look, planned, sent, take

BILLING_QUEUE = Address("public", "Billing")
TRIED = Planned(try_first=10, watch_seconds=0, **CALM)


@pytest.fixture
def session(archived_console: str) -> Iterator[Connection]:
    with postgresql().connect(archived_console, for_handlers=True) as connection:
        yield connection


def retried(person: User) -> Operation:
    """A retry of all 88 that died of REFUSED."""
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), person, "console")
    lifecycle.start(operation.pk, person)
    runner.run(operation.pk)
    return operation


def go(operation: Operation, person: Any) -> Operation:
    lifecycle.start(operation.pk, person, "sent too early")
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def call_all_back(operation: Operation, person: Any) -> Operation:
    return go(acts.prepare(operation.pk, person, "console"), person)


def test_call_back_returns_waiting_messages_and_leaves_received_ones(ana: User) -> None:
    before = number_in(BILLING)
    operation = retried(ana)
    ids = sent(operation)
    take(operation, ids[:8])
    operation.refresh_from_db()
    assert acts.waiting(operation).number == 80
    back = call_all_back(operation, ana)
    assert (back.count, back.done, back.skipped, back.failed) == (80, 80, 0, 0), "what has left is not in the set"
    assert number_in(BILLING) == before
    assert {archived(each).state for each in ids[8:]} == {"dead"}
    assert {archived(each).state for each in ids[:8]} == {"retried"}
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (8, 80), "the retry says what it did not send in the end"
    assert acts.waiting(operation).number == 0
    entry = AuditEntry.objects.get(verb="call back")
    assert (entry.who, entry.count, entry.reason, entry.operation_id) == ("ana", 80, "sent too early", back.pk)
    with pytest.raises(EmptySelection, match="nothing is known to wait"):
        acts.prepare(operation.pk, ana, "console")
    assert single.act("retry", ids[9], ana, "console").result == "done", "and can be retried as before"


def test_waiting_messages_behind_many_received_ones_are_found(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = retried(ana)
    take(operation, sent(operation)[:50])  # not recorded as received yet
    operation.refresh_from_db()
    for page, found in ((10, (10, True)), (60, (10, True)), (38, (26, True)), (50, (38, False)), (1, (0, True))):
        monkeypatch.setattr(staged_figures, "PAGE", page)
        assert acts.waiting(operation) == found


def test_a_receiver_keeps_what_it_has_in_hand_and_does_not_wait(session: Connection, ana: User) -> None:
    operation = retried(ana)
    back = acts.prepare(operation.pk, ana, "console")
    first = row_of(session, operation, sent(operation)[0])
    with session.transaction():
        session.run(f"delete from {BILLING} where id = %(id)s::uuid", {"id": first})
        back = go(back, ana)  # while the receiver holds it
        session.run("set local lock_timeout = '1ms'")
        session.run(
            "update messages.message_archive set ended_at = now() where id = %(id)s", {"id": sent(operation)[0]}
        )
    assert (back.done, back.skipped) == (87, 1)
    (left,) = operations_not_done(session, back)
    assert left.why == call_back.PICKED_UP
    assert archived(left.archive_id).state == "retried"


def row_of(session: Connection, operation: Operation, archive_id: int) -> str:
    asked = "select sent_as from messages.operation_item where operation = %(o)s and archive_id = %(a)s"
    return str(session.value(asked, {"o": operation.pk, "a": archive_id}))


def operations_not_done(session: Connection, operation: Operation) -> list[Any]:
    return queries.not_done(session, operation.pk)


@pytest.mark.parametrize("change", ["body = 'another'", "headers = '{}'", "id = gen_random_uuid()"])
def test_row_changed_in_the_queue_is_not_called_back(session: Connection, ana: User, change: str) -> None:
    operation = retried(ana)
    back = acts.prepare(operation.pk, ana, "console")
    changed = sent(operation)[0]
    session.run(f"update {BILLING} set {change} where id = %(id)s::uuid", {"id": row_of(session, operation, changed)})
    back = go(back, ana)
    assert back.done == 87
    assert archived(changed).state == "retried"


def test_a_row_with_the_message_id_of_one_that_was_sent_stays(session: Connection, ana: User) -> None:
    """Any sender may use another message's id."""
    operation = retried(ana)
    like = f"select gen_random_uuid(), headers, body from {BILLING} where id = %(id)s::uuid"
    asked = {"id": row_of(session, operation, sent(operation)[0])}
    session.run(f"insert into {BILLING} (id, headers, body) {like}", asked)
    before = number_in(BILLING)
    assert call_all_back(operation, ana).done == 88
    assert number_in(BILLING) == before - 88


def test_code_of_others_is_not_run(session: Connection, ana: User) -> None:
    operation = retried(ana)
    session.run("create role stranger")
    session.run("create function public.spy() returns trigger language plpgsql as $$ begin return old; end $$")
    session.run("alter function public.spy() owner to stranger")
    session.run(f"create trigger spy before delete on {BILLING} for each row execute function public.spy()")
    try:
        back = call_all_back(operation, ana)
    finally:
        session.run(f"drop trigger spy on {BILLING}")
        session.run("drop function public.spy()")
        session.run("drop role stranger")
    assert (back.done, back.failed) == (0, 88)
    assert "trigger spy of role stranger" in operations_not_done(session, back)[0].why


@pytest.mark.parametrize("where", strangers_code.PUT)
def test_foreign_code_attached_after_the_retry_never_runs(session: Connection, ana: User, where: str) -> None:
    operation = retried(ana)
    back = acts.prepare(operation.pk, ana, "console")
    operation.refresh_from_db()
    with strangers_code.put_into_billing(session, where):
        if where != "child":
            assert acts.waiting(operation) == (0, True), "not looked into, so not known"
        back = go(back, ana)
        assert not strangers_code.has_run(session)
    assert (back.done, back.failed) == (0, 88)
    assert "of role" in operations_not_done(session, back)[0].why


def test_a_staged_retry_says_that_they_were_skipped_and_ends(ana: User) -> None:
    operation = planned(ana, TRIED)
    clock = Clock()
    staged_retry.step(operation.pk, clock.now)
    assert classes(operation)["sent"] == 10
    lifecycle.cancel(operation.pk, ana)
    assert call_all_back(operation, ana).done == 10
    assert classes(operation) == {"skipped": 10, "open": 78}
    staged_retry.step(operation.pk, clock.after(600))
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.CANCELLED, 0, 10)


def test_only_a_retry_that_was_started_and_only_who_may(ana: User, viewer: User) -> None:
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    for number in (frozen.pk, frozen.pk + 999):
        with pytest.raises(OperationRefused, match="has sent no messages"):
            acts.prepare(number, ana, "console")
    with pytest.raises(OperationNotAllowed):
        acts.prepare(retried(ana).pk, viewer, "console")


@pytest.mark.parametrize(("where", "done_by_the_killed"), [("recount", 30), ("record", 0)])
def test_nothing_is_lost_or_doubled_by_a_kill(
    archived_console: str, ana: User, where: str, done_by_the_killed: int
) -> None:
    before = number_in(BILLING)
    operation = retried(ana)
    back = acts.prepare(operation.pk, ana, "console")
    lifecycle.start(back.pk, ana, "sent too early")
    run_and_kill(back, archived_console, where)
    assert number_in(BILLING) == before + 88 - done_by_the_killed
    assert len(all_dead()) == done_by_the_killed, "each is in one place"
    runner.run(back.pk)
    for each in (back, operation):
        each.refresh_from_db()
    assert (back.state, back.done, back.skipped) == (Operation.State.DONE, 88, 0)
    assert (operation.done, operation.skipped) == (0, 88)
    assert (number_in(BILLING), len(all_dead())) == (before, 88)


def all_dead() -> list[Any]:
    return dead(100, exception=REFUSED)


def test_a_lease_message_is_called_back_while_nobody_has_locked_it(session: Connection, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    put = (
        "insert into messages.message_archive (created_at, message, result, handled_by, message_id) values"
        " (now(), '{\"kind\": \"Thumb\"}', 'failed', 'x', %(id)s) returning id"
    )
    ids = [int(session.value(put, {"id": number})) for number in ("900001", "900002")]
    operation = selection.freeze("retry", ids, "ana", "command")
    lifecycle.start(operation.pk, "ana")
    runner.run(operation.pk)
    session.run("update messages.message set lock_expires_at = now() where retried_from = %(id)s", {"id": ids[0]})
    back = call_all_back(operation, "ana")
    assert (back.done, back.skipped) == (1, 1)
    assert [archived(each).state for each in ids] == ["retried", "dead"]
    assert session.value("select count(*) from messages.message where retried_from = any(%(ids)s)", {"ids": ids}) == 1
    assert [each.result for each in dead_messages.retry(session, [ids[1]], "ana")] == ["done"]


def test_retried_message_discarded_while_waiting_is_binned_once(session: Connection, ana: User) -> None:
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "acts_allowed": True})
    operation = retried(ana)
    first = sent(operation)[0]
    archived_before = session.value("select count(*) from messages.message_archive")
    where = {"id": row_of(session, operation, first)}
    row = session.one(f"select id, seq from {BILLING} where id = %(id)s::uuid", where)
    assert row
    seen = SeenRow(Address("public", "Billing"), row.id, row.seq)
    (done,) = waiting_messages.act("discard", Address("public", "Billing"), [seen], ana, "console")
    assert (done.result, done.archive_id) == ("done", first)
    assert archived(first).state == "discarded"
    assert session.value("select count(*) from messages.message_archive") == archived_before
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (87, 1)
    assert [each.verb for each in store.events(session, first)][-2:] == ["retried", "discarded"]
    assert single.act("restore", first, ana, "console").result == "done"
    assert archived(first).state == "dead"


def acts_allowed(session: Connection, *tables: str) -> None:
    for table in ("Billing", *tables):
        session.run(f'create table if not exists "{table}" (like {BILLING} including all)')
        about = {"kind": "input", "acts_allowed": True}
        Queue.objects.update_or_create(schema="public", table=table, defaults=about)


def on_the_way(session: Connection, operation: Operation, archive_id: int) -> SeenRow:
    """The sent row, as a page shows it."""
    asked = f"select id, seq from {BILLING} where id = %(id)s::uuid"
    row = session.one(asked, {"id": row_of(session, operation, archive_id)})
    assert row
    return SeenRow(BILLING_QUEUE, row.id, row.seq)


def test_a_retried_one_that_is_moved_to_the_dead_did_not_die_again(session: Connection, ana: User) -> None:
    acts_allowed(session)
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    first = sent(operation)[0]
    number = session.value("select count(*) from messages.message_archive")
    (done,) = waiting_messages.act("move_out", BILLING_QUEUE, [on_the_way(session, operation, first)], ana, "console")
    assert (done.result, done.archive_id, archived(first).state) == ("done", first, "dead")
    assert session.value("select count(*) from messages.message_archive") == number, "it lies there once"
    plan = look(operation, clock)
    assert (plan.operation.state, plan.operation.done, plan.operation.skipped) == (Operation.State.RUNNING, 4, 1)
    assert classes(operation) == {"skipped": 1, "sent": 4, "open": 83}
    assert [each.verb for each in store.events(session, first)][-2:] == ["retried", "moved out"]


@pytest.mark.parametrize("name", ["discard", "move_out", "purge"])
def test_edited_retries_taken_out_by_hand_stop_no_plan(session: Connection, name: str) -> None:
    """As the page advises instead of a call back: discard them in their queue."""
    acts_allowed(session)
    ed = person("ed", *OPERATOR, "read_message")
    session.run(f"delete from {BILLING}")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ed, "console")
    edit = MessageEdit("header", "Tenant", "add", "blue")
    edits.propose(frozen.pk, edit, ed)
    operation, clock = lifecycle.start(frozen.pk, ed, planned=Planned(**CALM)), Clock()
    look(operation, clock)
    if name == "purge":
        go(purges.prepare(BILLING_QUEUE, ed, "console"), ed)
    else:
        rows = [on_the_way(session, operation, each) for each in sent(operation)]
        waiting_messages.act(name, BILLING_QUEUE, rows, ed, "console")
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (0, 5), "told at once, also where nobody looks any more"
    assert classes(operation) == {"skipped": 5, "open": 83}
    assert "died again" not in look(operation, clock).says


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_retried_one_that_is_moved_is_looked_for_in_its_new_queue(session: Connection, is_edited: bool) -> None:
    acts_allowed(session, "Elsewhere")
    Endpoint.objects.update_or_create(name="Billing", defaults={"schema": "public", "table": "Billing", "ours": True})
    ed, elsewhere = person("ed", *OPERATOR, "read_message"), Address("public", "Elsewhere")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ed, "console")
    if is_edited:
        edits.propose(frozen.pk, MessageEdit("header", "Tenant", "add", "blue"), ed)
    operation, clock = lifecycle.start(frozen.pk, ed, planned=Planned(**CALM)), Clock()
    look(operation, clock)
    ids = sent(operation)[:2]
    rows = [on_the_way(session, operation, each) for each in ids]
    waiting_messages.act("move", BILLING_QUEUE, rows, ed, "console", target=elsewhere)
    look(operation, clock)
    assert classes(operation) == {"sent": 5, "open": 83}, "nobody has picked them up"
    assert [each.verb for each in store.events(session, ids[0])][-1] == "moved"
    session.run('delete from "Elsewhere" where id = %(id)s', {"id": rows[0].row_id})
    message = archived(ids[0])
    said = RetriedFrom(
        message.id,
        session.value("select retry_token from messages.message_archive where id = %(id)s", {"id": message.id}),
    )
    assert store.succeeded(session, said, message.message_id, elsewhere, "Elsewhere"), (
        "there it is told what came of it"
    )
    if not is_edited:
        assert call_all_back(operation, ed).done == 4
        assert archived(ids[1]).target == BILLING_QUEUE, "and from there it comes home"
        assert session.value('select count(*) from "Elsewhere"') == 0


def test_a_staged_retry_that_still_sends_waits_while_it_is_called_back(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    back = call_all_back(operation, ana)
    assert back.done == 5
    go_by(operation, 61)
    plan = look(operation, clock)
    assert (plan.operation.state, plan.decided_by, sent(operation)) == (Operation.State.PAUSED, "ana", [])
    assert AuditEntry.objects.get(verb="pause").reason == f"operation {back.pk} calls back what it has sent"
    staged_controls.go_on(operation.pk, ana)
    plan = look(operation, clock)
    assert (plan.operation.state, sent(operation)) == (Operation.State.STOPPED, [])
    assert plan.says.startswith("Stopped by itself: none of the first 5 was sent, or each was taken back")
    staged_controls.go_on(operation.pk, ana, "on purpose")
    look(operation, clock)
    assert sent(operation), "who goes on from there has seen that"


def test_an_edited_one_that_is_discarded_leaves_no_retry_without_an_end(session: Connection, ana: User) -> None:
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "acts_allowed": True})
    (message,) = dead(1, exception=REFUSED)
    billing = Address("public", "Billing")
    edited = edited_retry.EditedMessage({"Own": "x"}, b"{}")
    changes = edited_retries.EditChanges({}, {}, None)
    out = edited_retries.retry_edited(message.id, BILLING, edited, billing, ana, "console", "", changes)
    assert out.outcome.result == "done"
    row = session.one(f"select id, seq from {BILLING} where headers like %(id)s", {"id": f"%{out.message_id}%"})
    assert row
    (done,) = waiting_messages.act("discard", billing, [SeenRow(billing, row.id, row.seq)], ana, "console")
    assert done.result == "done"
    assert archived(done.archive_id or 0).state == "discarded"
    assert archived(message.id).state == "dead_again", "what it became lies in the bin"


def test_message_deferred_by_its_endpoint_is_discarded_without_death(session: Connection, ana: User) -> None:
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "acts_allowed": True})
    Endpoint.objects.update_or_create(name="Billing", defaults={"schema": "public", "table": "Billing", "ours": True})
    operation = retried(ana)
    first, billing = sent(operation)[0], Address("public", "Billing")
    where = {"id": row_of(session, operation, first)}
    put_back = "id = gen_random_uuid(), headers = replace(headers, '{', '{\"NServiceBus.Retries\": \"1\",')"
    row = session.one(f"update {BILLING} set {put_back} where id = %(id)s::uuid returning id, seq, headers", where)
    assert row
    assert "Pgqueue.RetriedFrom" in row.headers
    (done,) = waiting_messages.act("discard", billing, [SeenRow(billing, row.id, row.seq)], ana, "console")
    assert done.result == "done"
    assert archived(done.archive_id or 0).state == "discarded"
    assert archived(first).state == "retried", "it did not die again"
    assert [each.verb for each in store.events(session, first)][-2:] == ["retried", "discarded"]
