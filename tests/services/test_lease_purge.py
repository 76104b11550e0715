"""Purging the lease queue: each waiting message is discarded once; locked and later ones stay."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.services import purges
from pgqueue_admin.services.operations import edits, lifecycle, runner, selection, single
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from tests.archived_messages import OPERATOR, person
from tests.lease import original
from tests.services.test_killed import run_and_kill

LEASE = '"messages"."message"'
Connect = Callable[..., Connection]


@pytest.fixture(autouse=True)
def archive(console_database: str, settings: Any) -> str:
    """Replaces this folder's fixture: no transport messages."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    return console_database


def started(person: Any) -> Operation:
    return lifecycle.start(purges.prepare(QUEUE, person, "console").pk, person, "flood of a test")


def ended(operation: Operation) -> Operation:
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def number_in_queue(session: Connection) -> int:
    return int(session.value("select count(*) from messages.message"))


def binned(session: Connection, operation: Operation) -> list[Any]:
    asked = "select * from messages.message_archive where operation = %(pk)s and state = 'discarded' order by id"
    return session.all(asked, {"pk": operation.pk})


def retried(queue: LeaseQueue, ana: User, number: int, edit: MessageEdit | None = None) -> Operation:
    """Dead messages that an operation has retried."""
    queue.publish_many([{"kind": "render", "n": each} for each in range(number)])
    for lease in queue.claim(number):
        queue.finish(lease, "failed", "no encoder")
    retry = selection.freeze("retry", ArchiveFilter(state="dead", kind="lease"), ana, "console")
    if edit:
        edits.propose(retry.pk, edit, ana)
    lifecycle.start(retry.pk, ana)
    return ended(retry)


def test_purge_bins_waiting_messages_and_leaves_locked_and_later_ones(
    queue: LeaseQueue, session: Connection, ana: User, archive: str, connect: Connect
) -> None:
    queue.publish_many([{"kind": "render", "n": each} for each in range(250)])
    locked, later = queue.claim(2)
    queue.release(later, after=3600)
    listener = connect(archive)
    listener.run("listen dead_message")
    operation = purges.prepare(QUEUE, ana, "console")
    assert (operation.count, operation.queues) == (249, {LEASE: 249})
    queue.publish_many(["later"] * 3)
    assert number_in_queue(session) == 253, "nothing has happened yet"
    lifecycle.start(operation.pk, ana, "flood of a test")
    operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 249, 0)
    assert number_in_queue(session) == 4
    rows = binned(session, operation)
    assert {row.message["n"] for row in rows} == set(range(250)) - {locked.message["n"]}
    assert {(row.result, row.resolved_by, row.queue, row.message_type) for row in rows} == {
        ("rejected", "ana", LEASE, "render")
    }  # fmt: skip
    assert rows[0].details == "Purged from message by ana while it waited."
    assert not list(listener.raw.notifies(timeout=0.1)), "nobody is told of a death"
    entry = AuditEntry.objects.get(verb="purge")
    assert (entry.who, entry.count, entry.subject, entry.reason) == ("ana", 249, LEASE, "flood of a test")
    ended_as = queue.finish(locked, "success")
    assert ended_as
    assert ended_as.result == "success"

    still = ArchiveFilter(state="discarded", last_operation=operation.pk)
    back = selection.freeze("restore", still, ana, "console")
    lifecycle.start(back.pk, ana)
    assert ended(back).done == 249
    assert single.act("retry", rows[0].id, ana, "console").result == "done"
    assert session.value("select message from messages.message order by id desc limit 1") == rows[0].message


def test_messages_claimed_during_a_purge_are_skipped(
    queue: LeaseQueue, session: Connection, ana: User, archive: str, connect: Connect
) -> None:
    queue.publish_many(["render"] * 10)
    operation = started(ana)
    worker = connect(archive)
    with worker.transaction():
        queue.on(worker).claim(3)
        operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 7, 3)
    assert number_in_queue(session) == 3


def test_a_retried_one_goes_back_to_its_place_in_the_archive(queue: LeaseQueue, session: Connection, ana: User) -> None:
    retry = retried(queue, ana, 5)
    queue.publish("another")
    operation = ended(started(ana))
    assert (operation.done, number_in_queue(session)) == (6, 0)
    assert session.value("select count(*) from messages.message_archive") == 6, "each lies there once"
    assert len(binned(session, operation)) == 6
    retry.refresh_from_db()
    assert (retry.done, retry.skipped) == (0, 5), "the retry says what it did not send in the end"


def test_purged_edited_retry_is_binned_as_a_new_message(queue: LeaseQueue, session: Connection) -> None:
    ed = person("ed", *OPERATOR, "read_message")
    retry = retried(queue, ed, 2, MessageEdit("field", "n", "set", "7", is_json=True))
    operation = ended(started(ed))
    retry.refresh_from_db()
    assert (retry.done, retry.skipped) == (0, 2), "nobody received it: the retry sent nothing, and nothing died of it"
    assert [row.message["n"] for row in binned(session, operation)] == [7, 7]
    assert [row.state for row in session.all("select state from messages.message_archive order by id limit 2")] == [
        "dead_again", "dead_again"
    ]  # fmt: skip


@pytest.mark.parametrize(("where", "done_by_the_killed"), [("recount", 30), ("_purge_chunk", 0), ("_record_purged", 0)])
def test_nothing_is_lost_or_doubled_by_a_kill(
    queue: LeaseQueue, session: Connection, archive: str, ana: User, where: str, done_by_the_killed: int
) -> None:
    queue.publish_many(list(range(88)))
    operation = started(ana)
    run_and_kill(operation, archive, where, "public,messages")
    assert number_in_queue(session) == 88 - done_by_the_killed
    assert len(binned(session, operation)) == done_by_the_killed
    operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 88, 0)
    assert sorted(row.message for row in binned(session, operation)) == list(range(88))


def test_a_queue_that_was_emptied_since_is_not_the_one_that_was_counted(
    queue: LeaseQueue, session: Connection, ana: User
) -> None:
    """TRUNCATE with RESTART IDENTITY, as in the original's own script."""
    queue.publish_many(["old"] * 3)
    operation = started(ana)
    session.run("truncate messages.message restart identity")
    queue.publish_many(["new"] * 3)
    operation = ended(operation)
    assert (operation.done, operation.failed, "counted" in operation.last_error) == (0, 3, True)
    assert number_in_queue(session) == 3


def test_purge_without_the_right_or_a_watched_schema_is_refused(
    queue: LeaseQueue, session: Connection, ana: User, viewer: User, settings: Any
) -> None:
    queue.publish("render")
    with pytest.raises(OperationNotAllowed):
        purges.prepare(QUEUE, viewer, "console")
    operation = started(ana)
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    with pytest.raises(OperationRefused, match="The schema messages is not watched here"):
        purges.prepare(QUEUE, ana, "console")
    assert (ended(operation).failed, number_in_queue(session)) == (1, 1)


def test_purge_bins_original_clients_messages_and_skips_their_locks(
    queue: LeaseQueue, session: Connection, ana: User, archive: str, connect: Connect
) -> None:
    session.run("""insert into messages.message (message) values ('["ok"]'), ('["slow"]')""")
    first = session.value("select min(id) from messages.message")
    worker = connect(archive).raw
    worker.execute("set timezone = 'UTC'")
    taken = original.retrieve(worker, first)
    operation = ended(started(ana))
    assert (operation.count, operation.done) == (1, 1)
    original.finish(worker, taken, "success")
    rows = session.all("select message, result::text as result, state from messages.message_archive order by id")
    assert [(row.message, row.result, row.state) for row in rows] == [
        (["slow"], "rejected", "discarded"), (["ok"], "success", "succeeded")
    ]  # fmt: skip
