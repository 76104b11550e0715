"""Acts on many: the selection is frozen, started once, and each message has an outcome (C4, CONSOLE 7)."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pgqueue_admin.archive.messages import MOST_HEADERS, ArchiveFilter
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, queries, runner, selection, single
from pgqueue_admin.services.operations.errors import (
    AlreadyDecided,
    EmptySelection,
    OperationNotAllowed,
    OperationRefused,
)
from tests.archived_messages import BILLING, REFUSED, archived, dead, events_of, number_in

State = Operation.State


def finished(operation: Operation) -> Operation:
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def test_freezing_counts_and_does_nothing(ana: User) -> None:
    before = number_in(BILLING)
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console", "gateway is back")
    assert (operation.state, operation.count, operation.queues) == (State.FROZEN, 88, {BILLING: 88})
    assert operation.selection == f"state:dead error:{REFUSED}"
    assert number_in(BILLING) == before
    assert not runner.run_chunk(operation.pk)
    assert number_in(BILLING) == before


def test_the_set_never_grows(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    newcomer = dead(exception="TimeoutException")[0]
    with queue_database().write_session() as connection:
        change = "update messages.message_archive set exception_type = %(type)s where id = %(id)s"
        connection.run(change, {"type": REFUSED, "id": newcomer.id})
    lifecycle.start(operation.pk, ana)
    assert finished(operation).done == 88
    assert archived(newcomer.id).state == "dead"


def test_thousands_run_to_the_end(ana: User) -> None:
    """All 2,597 recorded dead: each is back in its queue; the 27 without a queue are still dead, with the reason."""
    targets = ('"public"."Sales"', '"public"."Billing"', '"public"."Shipping"', '"public"."Shop.Web"')
    before = {queue: number_in(queue) for queue in targets}
    operation = selection.freeze("retry", ArchiveFilter(state="dead"), ana, "console", "all mended")
    lifecycle.start(operation.pk, ana)
    finished(operation)
    assert (operation.state, operation.count) == (State.DONE, 2597)
    assert (operation.done, operation.skipped, operation.failed) == (2570, 0, 27)
    assert {queue: number_in(queue) - before[queue] for queue in targets} == dict(
        zip(targets, (1745, 367, 233, 127), strict=True)
    )
    assert events_of(operation.pk) == 2570


def test_every_item_is_done_once_in_chunks(ana: User) -> None:
    before = number_in(BILLING)
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    assert runner.run_chunk(operation.pk, 30)
    operation.refresh_from_db()
    assert (operation.state, operation.done) == (State.RUNNING, 30)
    assert number_in(BILLING) == before + 30
    finished(operation)
    assert (operation.state, operation.done, operation.skipped, operation.failed) == (State.DONE, 88, 0, 0)
    assert number_in(BILLING) == before + 88
    assert events_of(operation.pk) == 88
    assert not runner.run_chunk(operation.pk)
    assert number_in(BILLING) == before + 88


def test_the_set_is_counted_at_the_end_and_not_by_each_chunk(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, count = [], runner._counted

    def noted(pk: int) -> Any:
        counted.append(pk)
        return count(pk)

    monkeypatch.setattr(runner, "CHUNK", 10)
    monkeypatch.setattr(runner, "COUNT_EVERY", 3600.0)
    monkeypatch.setattr(runner, "_counted", noted)
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    counted.clear()
    assert (finished(operation).done, operation.state) == (88, State.DONE)
    assert counted == [operation.pk]


@pytest.mark.parametrize(("seconds", "sizes"), [(3600.0, [10, 20, 40, 40]), (0.0, [10] * 9)])
def test_chunks_grow_while_they_are_quick(
    ana: User, monkeypatch: pytest.MonkeyPatch, seconds: float, sizes: list[int]
) -> None:
    """Up to a limit: cancelling waits for one chunk, and so do others that need its messages."""
    asked, chunk = [], runner.chunk

    def noted(operation: Operation, size: int) -> bool:
        asked.append(size)
        return chunk(operation, size)

    for name, value in {"CHUNK": 10, "LARGEST_CHUNK": 40, "CHUNK_SECONDS": seconds, "chunk": noted}.items():
        monkeypatch.setattr(runner, name, value)
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    assert finished(operation).done == 88
    assert asked == sizes


def test_a_chunk_ends_where_its_headers_are_large_enough(ana: User) -> None:
    """A retry reads headers: two hundred of several megabytes would exceed the process's memory."""
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    with queue_database().write_session() as connection:
        more = """left(headers, -1) || ',"x":"' || repeat('x', %(size)s) || '"}'"""
        items = (
            "select archive_id from messages.operation_item where operation = %(pk)s and position = any (%(positions)s)"
        )
        asked = {"pk": operation.pk, "positions": [2, 3], "size": MOST_HEADERS}
        connection.run(f"update messages.message_archive set headers = {more} where id in ({items})", asked)
    lifecycle.start(operation.pk, ana)
    for done in (1, 2, 3, 88):
        assert runner.run_chunk(operation.pk) is (done < 88)
        operation.refresh_from_db()
        assert (operation.done, operation.failed) == (done, 0)


def test_each_message_has_its_outcome(ana: User) -> None:
    first = dead(exception=REFUSED)[0]
    operation = selection.freeze("retry", ArchiveFilter(), ana, "console")
    again = selection.freeze("retry", ArchiveFilter(exception="QueueNotFoundException"), ana, "console")
    single.act("discard", first.id, "bob", "command")
    lifecycle.start(operation.pk, ana)
    finished(operation)
    assert (operation.count, operation.done, operation.skipped, operation.failed) == (2597, 2569, 1, 27)
    with queue_database().read_session() as connection:
        [skipped] = queries.items(connection, operation.pk, outcome="skipped")
        failed = queries.items(connection, operation.pk, outcome="failed", limit=100)
        states = {now.state: now.count for now in queries.states(connection, operation.pk)}
        targets = queries.retry_targets(connection, again)
        assert queries.changed(connection, operation).number == 0
    assert sorted(each.target.name for each in targets.refused) == [
        '"Decommissioned"."Reminders"',
        '"public"."Newsletter"',
    ]
    assert (skipped.archive_id, skipped.previous_actor, skipped.state) == (first.id, "bob", "discarded")
    assert skipped.why.startswith("It was discarded by bob at ")
    assert len(failed) == 27
    assert all("Its queue is gone" in item.why for item in failed)
    assert states == {"retried": 2569, "dead": 27, "discarded": 1}


def test_the_preview_says_what_changed_since(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    single.act("discard", dead(exception=REFUSED)[0].id, "bob", "command")
    with queue_database().read_session() as connection:
        assert queries.changed(connection, operation) == (1, "bob")
        made_of = queries.made_of(connection, operation.pk)
    assert [(row.name, row.count) for row in made_of if row.what == "cause"] == [(REFUSED, 88)]
    assert [row.count for row in made_of if row.what == "all"] == [88]


def test_the_second_start_is_told_who_and_when(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    with pytest.raises(AlreadyDecided, match=r"Nothing more was retried: ana started operation \d+ at ") as refused:
        lifecycle.start(operation.pk, "bob")
    operation.refresh_from_db()
    assert (refused.value.who, refused.value.when) == ("ana", operation.started_at)
    assert AuditEntry.objects.filter(operation_id=operation.pk).count() == 1


def test_starting_is_audited_with_count_and_reason(ana: User) -> None:
    operation = selection.freeze("discard", ArchiveFilter(exception=REFUSED), "bob", "command", "test data")
    lifecycle.start(operation.pk, ana)
    [entry] = AuditEntry.objects.all()
    assert (entry.who, entry.verb, entry.noun, entry.subject) == ("ana", "discard", "message", BILLING)
    assert (entry.count, entry.reason, entry.operation_id) == (88, "test data", operation.pk)
    assert finished(operation).done == 88
    assert archived(dead(state="discarded", exception=REFUSED)[0].id).resolved_by == "ana"


def test_rest_of_an_operation_can_be_cancelled(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    runner.run_chunk(operation.pk, 40)
    lifecycle.cancel(operation.pk, "bob")
    finished(operation)
    assert (operation.state, operation.cancelled_by, operation.done) == (State.CANCELLED, "bob", 40)
    assert len(dead(100, exception=REFUSED)) == 48
    with pytest.raises(AlreadyDecided, match="bob cancelled operation"):
        lifecycle.start(operation.pk, ana)
    with pytest.raises(AlreadyDecided, match="bob cancelled operation"):
        lifecycle.cancel(operation.pk, ana)


def test_a_frozen_one_lapses_after_half_an_hour(ana: User) -> None:
    old = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    young = selection.freeze("retry", [dead()[0].id], ana, "console")
    # A minute beyond the limit: the deciding clock is the database's, milliseconds off this host's.
    Operation.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(minutes=31))
    with pytest.raises(AlreadyDecided, match="was not started within 30 minutes"):
        lifecycle.start(old.pk, ana)
    assert selection.lapse() == 0
    assert selection.lapse(timezone.now() + timedelta(minutes=31)) == 1
    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.state, young.state) == (State.LAPSED, State.LAPSED)
    with queue_database().read_session() as connection:
        assert queries.items(connection, old.pk) == []


def test_acts_without_the_right_change_nothing(ana: User, viewer: User) -> None:
    said = (
        "Nothing was retried: needs the right “Can retry dead messages”, which an administrator gives in Django admin"
    )
    with pytest.raises(OperationNotAllowed, match=said):
        selection.freeze("retry", ArchiveFilter(), viewer, "console")
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    for decide in (lifecycle.start, lifecycle.cancel):
        with pytest.raises(OperationNotAllowed):
            decide(operation.pk, viewer)
    with pytest.raises(OperationNotAllowed):
        single.act("discard", dead()[0].id, viewer, "console")
    assert not AuditEntry.objects.exists()


def test_a_choice_without_messages_makes_no_operation(ana: User) -> None:
    for chosen in (ArchiveFilter(queue="nowhere"), [999_999, -1, 2**40], []):
        with pytest.raises(EmptySelection):
            selection.freeze("retry", chosen, ana, "console")
    with pytest.raises(OperationRefused, match="that is for dead messages, these are succeeded"):
        selection.freeze("retry", ArchiveFilter(state="succeeded"), ana, "console")
    assert not Operation.objects.exists()


def test_a_failing_chunk_leaves_all_of_it_undone(ana: User) -> None:
    from pgqueue_admin.dialects.errors import DatabaseError

    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event add constraint full_disk check (verb <> 'retried')")
    before = number_in(BILLING)
    with pytest.raises(DatabaseError):
        runner.run_chunk(operation.pk)
    assert number_in(BILLING) == before
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event drop constraint full_disk")
    assert finished(operation).done == 88


def test_a_new_console_beside_an_old_archive_takes_numbers_that_are_free(ana: User) -> None:
    """Sets are beside the queues: an earlier or a second console has used our numbers."""
    with queue_database().write_session() as connection:
        taken = "insert into messages.operation_item (operation, position, archive_id) select n, 1, 1"
        connection.run(f"{taken} from generate_series(1, 40) n")
    first = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    second = selection.freeze("discard", [dead()[0].id], ana, "console")
    assert (first.pk, first.count, second.pk) == (41, 88, 42)
    assert list(Operation.objects.values_list("pk", flat=True)) == [42, 41]
