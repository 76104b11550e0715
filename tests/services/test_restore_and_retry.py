"""Restore and retry: one act, one transaction a message; a message that cannot be retried stays discarded."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.models import AuditEntry, Operation, PostedMark, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, queries, runner, selection, single
from pgqueue_admin.services.operations.errors import OperationNotAllowed
from tests.archived_messages import BILLING, REFUSED, archived, dead, number_in, person
from tests.services.test_killed import run_and_kill


def discarded(who: Any, **filter: Any) -> list[int]:
    ids = [each.id for each in dead(100, **(filter or {"exception": REFUSED}))]
    operation = selection.freeze("discard", ids, who, "console")
    lifecycle.start(operation.pk, who)
    runner.run(operation.pk)
    return ids


def test_discarded_messages_are_restored_and_sent_in_one_act(ana: User) -> None:
    before, ids = number_in(BILLING), discarded(ana)
    single.act("restore", ids[0], "tomas", "console")
    operation = selection.freeze_discarded(ids, ana, "console")
    with queue_database().read_session() as connection:
        assert queries.changed(connection, operation) == (1, "tomas")
        assert queries.retry_targets(connection, operation).count == 87
    lifecycle.start(operation.pk, ana)
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (87, 1)
    assert number_in(BILLING) == before + 87
    with queue_database().read_session() as connection:
        assert [each.verb for each in store.events(connection, ids[1])] == ["discarded", "restored", "retried"]
    assert (AuditEntry.objects.get(verb="retry").after or {})["restored"] is True


def test_message_that_cannot_be_retried_stays_in_the_bin(ana: User) -> None:
    ids = discarded(ana, queue='"public"."Newsletter"')
    operation = selection.freeze_discarded(ids, ana, "console")
    lifecycle.start(operation.pk, ana)
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.done, operation.failed) == (0, len(ids))
    assert {archived(each).state for each in ids} == {"discarded"}


def test_restore_and_retry_needs_both_rights(ana: User) -> None:
    ids = discarded(ana)
    for name, right in (("bo", "retry_message"), ("cy", "discard_message")):
        with pytest.raises(OperationNotAllowed):
            selection.freeze_discarded(ids, person(name, right), "console")
    assert not Operation.objects.filter(kind="retry").exists()


def test_a_kill_neither_loses_nor_doubles_any(archived_console: str, ana: User) -> None:
    before, ids = number_in(BILLING), discarded(ana)
    operation = selection.freeze_discarded(ids, ana, "console")
    lifecycle.start(operation.pk, ana)
    run_and_kill(operation, archived_console, "record")
    assert (number_in(BILLING), len(dead(100, state="discarded"))) == (before, 88)
    runner.run(operation.pk)
    assert (number_in(BILLING), len(dead(100, state="discarded"))) == (before + 88, 0)


def test_the_preview_says_whether_the_cause_still_happens(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    with queue_database().write_session() as connection:
        quiet = queries.causes(connection, operation)
        assert quiet
        assert (quiet.in_an_hour, quiet.since_mark, quiet.mark) == (0, 0, None)
        assert quiet.last_at is not None
        connection.run(
            "update messages.message_archive set died_at = now() - interval '10 minutes'"
            " where id in (select archive_id from messages.operation_item where operation = %(pk)s and position <= 3)",
            {"pk": operation.pk},
        )
        PostedMark.objects.create(at=database_clock.now() - timedelta(minutes=5), who="ci", text="fixed")
        again = queries.causes(connection, operation)
    assert again
    assert (again.in_an_hour, again.since_mark) == (3, 0)
    assert again.mark
    assert again.mark.text == "fixed"
