"""Purging a queue: each waiting message is discarded once, whichever process is killed; later ones stay."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, Queue
from pgqueue_admin.services import purges
from pgqueue_admin.services.operations import lifecycle, runner, selection, single
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from tests import strangers_code
from tests.archived_messages import REFUSED, archived, number_in
from tests.services.test_killed import run_and_kill

BILLING, NAME = Address("public", "Billing"), '"public"."Billing"'
SEQUENCE = 'public."Billing_seq_seq"'


@pytest.fixture
def session(archived_console: str) -> Iterator[Connection]:
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "acts_allowed": True})
    with postgresql().connect(archived_console, for_handlers=True) as connection:
        connection.run(f"delete from {NAME}")
        yield connection


def fill(session: Connection, number: int, headers: str = '{"NServiceBus.MessageId": "m"}', body: str = "b") -> None:
    put = (
        f"insert into {NAME} (id, expires, headers, body) select gen_random_uuid(), null, %(headers)s, %(body)s::bytea"
    )
    session.run(f"{put} from generate_series(1, %(number)s)", {"number": number, "headers": headers, "body": body})


def started(person: Any) -> Operation:
    operation = purges.prepare(BILLING, person, "console")
    return lifecycle.start(operation.pk, person, "flood of a test")


def ended(operation: Operation) -> Operation:
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def binned(session: Connection, operation: Operation) -> list[Any]:
    asked = "select * from messages.message_archive where operation = %(pk)s and state = 'discarded' order by id"
    return session.all(asked, {"pk": operation.pk})


def test_purge_bins_waiting_messages_and_leaves_later_ones(session: Connection, ana: User) -> None:
    fill(session, 250)
    fill(session, 1, headers="no json")
    session.run(f"insert into {NAME} (id, headers, body) values (gen_random_uuid(), '{{}}', null)")
    operation = purges.prepare(BILLING, ana, "console")
    assert (operation.count, operation.queues) == (252, {NAME: 252})
    fill(session, 3)
    assert number_in(NAME) == 255, "nothing has happened yet"
    lifecycle.start(operation.pk, ana, "flood of a test")
    operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 252, 0)
    assert number_in(NAME) == 3
    rows = binned(session, operation)
    assert len(rows) == len({row.row_id for row in rows}) == 252
    assert {(row.result, row.resolved_by, row.queue) for row in rows} == {("rejected", "ana", NAME)}
    entry = AuditEntry.objects.get(verb="purge")
    assert (entry.who, entry.count, entry.subject, entry.reason) == ("ana", 252, NAME, "flood of a test")

    still = ArchiveFilter(state="discarded", last_operation=operation.pk)
    restored = selection.freeze("restore", still, ana, "console")
    lifecycle.start(restored.pk, ana)
    assert ended(restored).done == 252
    assert single.act("retry", rows[0].id, ana, "console").result == "done"


def test_purge_skips_messages_in_flight(session: Connection, archived_console: str, ana: User) -> None:
    fill(session, 10)
    operation = started(ana)
    with postgresql().connect(archived_console, for_handlers=True) as receiver, receiver.transaction():
        receiver.run(f"delete from {NAME} where seq in (select seq from {NAME} order by seq limit 3)")
        operation = ended(operation)
        assert operation.stays == 3, "not received yet"
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 7, 3)
    assert (number_in(NAME), len(binned(session, operation))) == (0, 7)


def test_a_retried_one_goes_back_to_its_place_in_the_archive(session: Connection, ana: User) -> None:
    fill(session, 2)
    retry = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(retry.pk, ana)
    runner.run(retry.pk)
    rows = int(session.value("select count(*) from messages.message_archive"))
    operation = ended(started(ana))
    assert (operation.done, number_in(NAME)) == (90, 0)
    assert session.value("select count(*) from messages.message_archive") == rows + 2, "each lies there once"
    assert len(binned(session, operation)) == 90
    retry.refresh_from_db()
    assert (retry.done, retry.skipped) == (0, 88), "the retry says what it did not send in the end"


@pytest.mark.parametrize(("where", "done_by_the_killed"), [("recount", 30), ("_purge_chunk", 0), ("_record_purged", 0)])
def test_nothing_is_lost_or_doubled_by_a_kill(
    session: Connection, archived_console: str, ana: User, where: str, done_by_the_killed: int
) -> None:
    fill(session, 88)
    ids = {row[0] for row in session.all(f"select id from {NAME}")}
    operation = started(ana)
    run_and_kill(operation, archived_console, where)
    assert number_in(NAME) == 88 - done_by_the_killed
    assert len(binned(session, operation)) == done_by_the_killed
    operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 88, 0)
    assert {row.row_id for row in binned(session, operation)} == ids


def test_two_workers_take_each_once(session: Connection, archived_console: str, ana: User) -> None:
    """One worker has the chunk: the other leaves it alone, and the purge has not ended."""
    fill(session, 5)
    operation = started(ana)
    with postgresql().connect(archived_console, for_handlers=True) as other, other.transaction():
        other.value(postgresql().purge.begin_chunk(), {"operation_id": operation.pk})
        assert ended(operation).state == Operation.State.RUNNING
    assert ended(operation).done == 5


def test_a_cancelled_one_leaves_the_rest_there(session: Connection, ana: User) -> None:
    fill(session, 300)
    operation = started(ana)
    runner.run_chunk(operation.pk)
    operation = lifecycle.cancel(operation.pk, ana)
    assert (operation.state, operation.done, number_in(NAME)) == (Operation.State.CANCELLED, 200, 100)


def test_cancelled_purge_keeps_its_number_and_takes_nothing(session: Connection, ana: User) -> None:
    fill(session, 3)
    operation = purges.prepare(BILLING, ana, "console")
    lifecycle.cancel(operation.pk, ana)
    assert number_in(NAME) == 3
    items = "select count(*) from messages.operation_item where operation = %(pk)s"
    assert session.value(items, {"pk": operation.pk}) == 1


def test_where_acts_are_off_nothing_is_purged(session: Connection, ana: User, viewer: User) -> None:
    fill(session, 1)
    with pytest.raises(OperationNotAllowed):
        purges.prepare(BILLING, viewer, "console")
    Queue.objects.filter(table="Billing").update(acts_allowed=False)
    with pytest.raises(OperationRefused, match="No endpoint of this console receives from Billing"):
        purges.prepare(BILLING, ana, "console")
    for other in (Address("public", "nothing"), Address("pg_catalog", "pg_class")):
        with pytest.raises(OperationRefused):
            purges.prepare(other, ana, "console")


def test_a_value_that_the_archive_has_no_place_for_keeps_its_message_there(session: Connection, ana: User) -> None:
    session.run(f"alter table {NAME} add column tenant text")
    fill(session, 4)
    session.run(f"update {NAME} set tenant = 'north' where seq = (select min(seq) from {NAME})")
    operation = ended(started(ana))
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 3, 1)
    assert operation.stays == 1
    assert session.value(f"select tenant from {NAME}") == "north"
    assert archived(binned(session, operation)[0].id).state == "discarded"


@pytest.mark.parametrize("where", strangers_code.PUT)
def test_code_of_others_that_came_since_the_start_is_not_run(session: Connection, ana: User, where: str) -> None:
    fill(session, 3)
    operation = started(ana)
    with strangers_code.put_into_billing(session, where):
        operation = ended(operation)
        assert not strangers_code.has_run(session)
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, 0, 3)
    assert operation.last_error
    assert number_in(NAME) == 3


_ANEW = f"alter table {NAME} rename to old; create table {NAME} (like old including all)"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (f"truncate {NAME} restart identity", "counted"),
        (f"truncate {NAME}", "counted"),
        (_ANEW, "counted"),
        (f"delete from {NAME}; alter sequence {SEQUENCE} restart", "counted"),
        (f"alter table {NAME} rename to old", "There is no queue table Billing now"),
    ],
)
def test_purge_that_may_not_go_on_ends_with_the_reason(session: Connection, ana: User, what: str, why: str) -> None:
    fill(session, 3)
    operation = started(ana)
    for statement in what.split(";"):
        session.run(statement)
    if "rename to old" not in what or what == _ANEW:
        fill(session, 3)
    operation = ended(operation)
    assert (operation.state, operation.done, operation.skipped, operation.failed) == (Operation.State.DONE, 0, 0, 3)
    assert why in operation.last_error
    assert not binned(session, operation)


def test_the_right_to_act_there_is_asked_for_each_chunk(session: Connection, ana: User) -> None:
    fill(session, 300)
    operation = started(ana)
    runner.run_chunk(operation.pk)
    Queue.objects.filter(table="Billing").update(acts_allowed=False)
    operation = ended(operation)
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, 200, 100)
    assert "No endpoint of this console receives from Billing" in operation.last_error
    assert number_in(NAME) == 100


def test_message_with_a_lower_seq_than_counted_stays(session: Connection, ana: User) -> None:
    """As with a sequence that cycles."""
    fill(session, 5)
    session.run(f"delete from {NAME} where seq < (select max(seq) from {NAME})")
    operation = started(ana)
    low = f"select gen_random_uuid(), headers, body, seq - 1 from {NAME}"
    session.run(f"insert into {NAME} (id, headers, body, seq) {low}")
    assert ended(operation).done == 1
    assert number_in(NAME) == 1
