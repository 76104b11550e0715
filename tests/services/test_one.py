"""An act on one message, run at once (C4, CONSOLE 7)."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.archive.messages import RETRIED_FROM, retried_from
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models import AuditEntry, Endpoint, Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import runner, single
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import BILLING, REFUSED, archived, dead, number_in


def test_retry_discard_restore(ana: User) -> None:
    message, before = dead(exception=REFUSED)[0], number_in(BILLING)
    assert single.act("discard", message.id, ana, "console").result == "done"
    assert single.act("restore", message.id, ana, "console").result == "done"
    outcome = single.act("retry", message.id, ana, "console")
    assert outcome.operation
    operation = Operation.objects.get(pk=outcome.operation)
    assert (outcome.result, outcome.target) == ("done", BILLING)
    assert (operation.state, operation.count, operation.done, operation.started_by) == ("done", 1, 1, "ana")
    assert number_in(BILLING) == before + 1
    assert list(AuditEntry.objects.values_list("verb", "who", "origin"))[::-1] == [
        ("discard", "ana", "console"),
        ("restore", "ana", "console"),
        ("retry", "ana", "console"),
    ]


def test_the_second_press_is_told_and_makes_no_operation(ana: User) -> None:
    message, before = dead(exception=REFUSED)[0], number_in(BILLING)
    single.act("retry", message.id, ana, "console")
    second = single.act("retry", message.id, "bob", "console")
    assert (second.result, second.previous_actor, second.operation) == ("skipped", "ana", None)
    assert second.previous_at == archived(message.id).resolved_at
    assert number_in(BILLING) == before + 1
    assert (Operation.objects.count(), AuditEntry.objects.count()) == (1, 1)


def test_two_presses_at_the_same_moment_send_once(ana: User) -> None:
    message, before = dead(exception=REFUSED)[0], number_in(BILLING)
    outcomes: list[Any] = []
    barrier = threading.Barrier(2)

    def press(who: str) -> None:
        barrier.wait(60)
        outcomes.append(single.act("retry", message.id, who, "console"))
        connections.close_all()

    threads = [threading.Thread(target=press, args=[who]) for who in ("ana", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcome.result for outcome in outcomes) == ["done", "skipped"]
    assert number_in(BILLING) == before + 1


def test_message_that_cannot_be_retried_says_why(ana: User) -> None:
    message = dead(exception="QueueNotFoundException")[0]
    outcome = single.act("retry", message.id, ana, "console")
    assert (outcome.result, outcome.why) == ("failed", message.why_no_retry)
    assert single.act("retry", 999_999, ana, "console").why == "It is no longer in the archive."
    assert not Operation.objects.exists()


def test_only_our_endpoints_are_told_which_message_it_was(ana: User) -> None:
    Endpoint.objects.create(name="Billing", ours=True, schema="public", table="Billing")
    for exception, table in ((REFUSED, "Billing"), ("InvalidCouponException", "Sales")):
        message = dead(exception=exception)[0]
        single.act("retry", message.id, ana, "console")
        with queue_database().read_session() as connection:
            headers = connection.value(f'select headers from "public"."{table}" order by seq desc limit 1')
        said = retried_from(h.parse(headers).get(RETRIED_FROM))
        assert (said and said.archive_id) == (message.id if table == "Billing" else None)


def test_a_schema_that_is_not_watched_is_not_written_to(ana: User, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    outcome = single.act("retry", dead(queue='"Legacy"."Invoicing"')[0].id, ana, "console")
    assert (outcome.result, "PGQUEUE_QUEUE_SCHEMAS" in str(outcome.why)) == ("failed", True)


def test_failed_single_retry_is_not_done_later(ana: User) -> None:
    message, before = dead(exception=REFUSED)[0], number_in(BILLING)
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event add constraint full_disk check (verb <> 'retried')")
    with pytest.raises(DatabaseError):
        single.act("retry", message.id, ana, "console")
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event drop constraint full_disk")
    operation = Operation.objects.get()
    runner.run(operation.pk)
    assert operation.state == Operation.State.CANCELLED
    assert (archived(message.id).state, number_in(BILLING)) == ("dead", before)


def test_committed_act_counts_as_done_when_only_its_counting_failed(ana: User, away_while_counting: None) -> None:
    """The act is committed beside the queues; the next process sets the console's row a moment later."""
    message, before = dead(exception=REFUSED)[0], number_in(BILLING)
    outcome = single.act("retry", message.id, ana, "console")
    assert (outcome.result, outcome.target, number_in(BILLING)) == ("done", BILLING, before + 1)
    operation = Operation.objects.get()
    assert operation.state == Operation.State.RUNNING
    runner.recount(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done) == (Operation.State.DONE, 1)


@pytest.fixture
def away_while_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue database is unavailable between commit and counting, then back."""
    whole = runner._counted

    def away(pk: int) -> Any:
        monkeypatch.setattr(runner, "_counted", whole)
        raise DatabaseDown("gone for a moment")

    monkeypatch.setattr(runner, "_counted", away)
