"""Acts on messages waiting in another database, of each kind: each message is in one place, wherever a process is
killed (docs/decisions/032). SQL Server is tested if one is configured.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from pgqueue_admin.archive import call_back as archive_call_back
from pgqueue_admin.archive import retention, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.models import AuditEntry, AuditIntent, Operation, Queue
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.monitor import delayed, discovery
from pgqueue_admin.services import purges, waiting_elsewhere, waiting_messages
from pgqueue_admin.services.operations import call_back as acts
from pgqueue_admin.services.operations import (
    crossing_decision,
    crossings,
    lifecycle,
    queries,
    reconcile,
    runner,
    selection,
    single,
)
from pgqueue_admin.services.operations.errors import OperationRefused
from tests import mssql
from tests.archived_messages import archived
from tests.billing import open_crossings
from tests.databases import Databases
from tests.killed_crossing import run_and_kill

Connect = Callable[[str], Connection]
HEADERS = '{"NServiceBus.MessageId":"m-%d","NServiceBus.EnclosedMessageTypes":"Shop.Thumb"}'
BODY = b'{"side":"left"}'
ACT = """
from uuid import UUID
from pgqueue_admin.archive import call_back as archive_call_back
from pgqueue_admin.archive import retention, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.dialects import Address
from pgqueue_admin.services import waiting_messages
name, schema, *rows = sys.argv[1].split()
queue = Address(schema, "Orders")
seen = [SeenRow(queue, UUID(each[:36]), int(each[37:])) for each in rows]
target = Address(schema, "Returns") if name == "move" else None
waiting_messages.act(name, queue, seen, "ana", "console", "mended", target)
"""
ACT_ON_DELAYED = """
import json
from uuid import UUID
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.dialects import Address
from pgqueue_admin.services import waiting_messages
name, schema, rows = json.loads(sys.argv[1])
table = Address(schema, "Orders.Delayed")
seen = [SeenRow(table, UUID(row_id), due=due) for row_id, due in rows]
waiting_messages.act(name, table, seen, "ana", "console", "mended")
"""
PLACES = [
    ("before the intent", False),
    ("before the mark", False),
    ("before the commit there", False),
    ("after the commit there", True),
    ("within the end", True),
    ("after the end", True),
]


class There(NamedTuple):
    """A database that is writable as billing: five messages wait in Orders, none in Returns."""

    dsn: str
    dialect: Any
    session: Any

    @property
    def orders(self) -> Address:
        return self._named("Orders")

    @property
    def returns(self) -> Address:
        return self._named("Returns")

    @property
    def delayed(self) -> Address:
        return self._named("Orders.Delayed")

    def _named(self, table: str) -> Address:
        address: Address = self.dialect.address(self.dialect.default_schema, table)
        return address

    def make(self) -> None:
        for queue in (self.orders, self.returns):
            self.dialect.queue_store(queue).create(self.session)
        if creation := getattr(self.dialect.crossings, "creation", ""):
            self.session.run(creation)

    def fill(self, number: int) -> None:
        queue = self.dialect.queue_store(self.orders)
        for each in range(number):
            self.session.run_all(queue.insertions([(HEADERS % each, BODY, None)]))

    def delay(self, number: int) -> list[SeenRow]:
        """Delayed messages, due in an hour or later, as a page shows them."""
        Queue.objects.create(schema=self.delayed.schema, table=self.delayed.table, kind="delayed")
        table = self.dialect.delayed_store(self.delayed, self.orders)
        table.create(self.session)
        due = datetime.now(UTC) + timedelta(hours=1)
        rows = [DelayedRow(HEADERS % each, BODY, due + timedelta(seconds=each), None) for each in range(number)]
        self.session.run_all(table.insertions(rows))
        return self.delays()

    def delays(self) -> list[SeenRow]:
        with queue_databases.database_of(self.delayed).read_session() as looking:
            table = discovery.readable(looking, self.delayed)
            assert table
            found = delayed.page(looking, table).messages
        return [SeenRow(self.delayed, each.id, due=each.due_text) for each in found]

    def number(self, queue: Address) -> int:
        return int(self.dialect.waiting_messages.count(self.session, queue).number)

    def waits(self, queue: Address) -> list[SeenRow]:
        with self.session.transaction():
            rows = self.dialect.waiting_messages.take(self.session, queue, 100, 10**9, -(2**62), 2**62)
        return [SeenRow(queue, row.id, row.seq) for row in rows]

    def act(self, name: str, seen: list[SeenRow], person: User) -> list[waiting_elsewhere.ActOutcome]:
        target = self.returns if name == "move" else None
        return waiting_messages.act(name, seen[0].table, seen, person, "console", "mended", target)


@pytest.fixture(params=["postgresql", *mssql.ONE])
def there(request: pytest.FixtureRequest, databases: Databases, settings: Settings, archive: None) -> Iterator[There]:
    with ExitStack() as kept:
        if request.param in mssql.ONE:
            dsn = kept.enter_context(request.getfixturevalue("mssql").database())
        else:
            dsn = kept.enter_context(databases.clone("empty"))
        dialect = dialect_for(dsn).aliased("billing")
        schema = dialect.default_schema
        billing = {"URL": dsn, "SCHEMAS": [schema], "WRITABLE": True}
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": billing}}
        made = There(dsn, dialect, kept.enter_context(dialect.connect(dsn)))
        made.make()
        made.fill(5)
        for queue in (made.orders, made.returns):
            Queue.objects.create(schema=queue.schema, table=queue.table, kind="input", acts_allowed=True)
        yield made
        queue_databases.close()


@pytest.fixture
def here(archived_console: str, connect: Connect) -> Connection:
    return connect(archived_console)


def archived_rows(here: Connection, state: str) -> list[Any]:
    asked = "select * from messages.message_archive where queue like '%%billing:%%Orders%%' and state = %(state)s"
    return here.all(f"{asked} order by id", {"state": state})


def test_discarded_messages_lie_in_the_bin_and_can_be_retried(there: There, here: Connection, ana: User) -> None:
    first, second, *_ = there.waits(there.orders)
    said = there.act("discard", [first, second], ana)
    assert [each.result for each in said] == ["done", "done"]
    rows = archived_rows(here, "discarded")
    assert {row.row_id for row in rows} == {first.row_id, second.row_id}
    assert {row.id for row in rows} == {each.archive_id for each in said}
    assert {(bytes(row.body), row.resolved_by, row.headers) for row in rows} == {
        (BODY, "ana", HEADERS % 0), (BODY, "ana", HEADERS % 1),
    }  # fmt: skip
    assert (there.number(there.orders), open_crossings(here)) == (3, 0)
    entry = AuditEntry.objects.get(verb="discard")
    assert (entry.who, entry.count, entry.reason) == ("ana", 2, "mended")
    assert (entry.after or {})["rows"] == [str(first.row_id), str(second.row_id)]
    restored = single.act("restore", rows[0].id, ana, "console")
    assert restored.result == "done"
    assert single.act("retry", rows[0].id, ana, "console").result == "done"
    assert there.number(there.orders) == 4


def test_message_moved_out_is_dead_in_the_archive(there: There, ana: User) -> None:
    (first, *_) = there.waits(there.orders)
    (done,) = there.act("move_out", [first], ana)
    assert (done.result, there.number(there.orders)) == ("done", 4)
    assert done.archive_id
    message = archived(done.archive_id)
    assert (message.state, message.target) == ("dead", there.orders)
    assert AuditEntry.objects.get(verb="move out").count == 1


def test_moved_messages_wait_in_the_other_queue_unchanged(there: There, here: Connection, ana: User) -> None:
    seen = there.waits(there.orders)[1:3]
    assert [each.result for each in there.act("move", seen, ana)] == ["done", "done"]
    assert [each.row_id for each in there.waits(there.returns)] == [each.row_id for each in seen]
    with there.session.transaction():
        row, *_ = there.session.all(*there.dialect.queue_store(there.returns).receiving())
    assert (row.headers, bytes(row.body)) == (HEADERS % 1, BODY)
    assert (there.number(there.orders), open_crossings(here)) == (3, 0)
    entry = AuditEntry.objects.get(verb="move")
    assert (entry.count, AuditIntent.objects.count()) == (2, 0)


def test_message_that_has_left_is_skipped_and_others_are_done(there: There, ana: User) -> None:
    seen = there.waits(there.orders)[:3]
    there.session.run_all([there.dialect.queue_store(there.orders).receiving()])
    assert [each.result for each in there.act("discard", seen, ana)] == ["skipped", "done", "done"]
    assert [each.result for each in there.act("move", seen, ana)] == ["skipped"] * 3
    assert not AuditEntry.objects.filter(verb="move"), "nothing was done"


def test_message_in_flight_is_skipped(there: There, ana: User) -> None:
    seen = there.waits(there.orders)[:2]
    with there.session.transaction():
        assert there.session.all(*there.dialect.queue_store(there.orders).receiving())
        assert [each.result for each in there.act("discard", seen, ana)] == ["skipped", "done"]


def test_acts_are_refused_where_they_are_not_switched_on(there: There, ana: User) -> None:
    seen = there.waits(there.orders)[:1]
    Queue.objects.update(acts_allowed=False)
    for name in ("discard", "move", "move_out"):
        with pytest.raises(OperationRefused, match="can be switched on in its settings"):
            there.act(name, seen, ana)
    with pytest.raises(OperationRefused, match="can be switched on in its settings"):
        purges.prepare(there.orders, ana, "console")


def test_move_into_another_database_is_refused(there: There, ana: User) -> None:
    Queue.objects.create(schema="public", table="Home", kind="input", acts_allowed=True)
    seen = there.waits(there.orders)[:1]
    with pytest.raises(OperationRefused, match="no commit spans two: move them to the dead, then retry"):
        waiting_messages.act("move", there.orders, seen, ana, "console", "", Address("public", "Home"))
    assert there.number(there.orders) == 5


@pytest.mark.chaos
@pytest.mark.parametrize("name", ["discard", "move_out", "move"])
@pytest.mark.parametrize(("where", "is_done"), PLACES)
def test_a_kill_anywhere_leaves_each_in_one_place_and_audited(
    there: There, here: Connection, archived_console: str, ana: User, name: str, where: str, is_done: bool
) -> None:
    seen = there.waits(there.orders)[:2]
    said = " ".join([name, there.orders.schema, *(f"{each.row_id}:{each.seq}" for each in seen)])
    run_and_kill(said, archived_console, there.dsn, where, ACT, there.dialect.default_schema)
    assert there.number(there.orders) == (3 if is_done else 5)
    reconcile.settle()
    assert (there.number(there.orders), open_crossings(here)) == (3 if is_done else 5, 0)
    state = {"discard": "discarded", "move_out": "dead"}.get(name, "")
    elsewhere = len(archived_rows(here, state)) if state else there.number(there.returns)
    assert elsewhere == (2 if is_done else 0)
    assert (AuditEntry.objects.count(), AuditIntent.objects.count()) == (int(is_done), 0)
    reconcile.settle()
    assert AuditEntry.objects.count() == int(is_done)


def test_an_answer_that_never_comes_is_asked_for(there: There, here: Connection, ana: User) -> None:
    """The other database has committed, but this process does not learn it."""
    seen = there.waits(there.orders)[:2]

    def away(*about: Any) -> None:
        raise DatabaseDown("this process hears no more")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "_finish", away)
        assert [each.result for each in there.act("discard", seen, ana)] == ["unknown"] * 2
    assert (AuditEntry.objects.get(verb="discard").after or {})["outcome"] == "not known"
    reconcile.settle()
    assert (len(archived_rows(here, "discarded")), open_crossings(here)) == (2, 0)
    assert AuditEntry.objects.count() == 1


# --- delayed


def test_delayed_ones_go_on_at_once_as_their_mover_would_send_them(there: There, here: Connection, ana: User) -> None:
    first, second, third = there.delay(3)
    before = {row.row_id for row in there.waits(there.orders)}
    assert [each.result for each in there.act("run_now", [first, second], ana)] == ["done", "done"]
    assert there.delays() == [third]
    came = [row for row in there.waits(there.orders) if row.row_id not in before]
    assert len(came) == 2
    with there.session.transaction():
        rows = [
            row for _ in range(7) for row in there.session.all(*there.dialect.queue_store(there.orders).receiving())
        ]
    assert {(row.headers, bytes(row.body), row.expired) for row in rows[5:]} == {
        (HEADERS % 0, BODY, False), (HEADERS % 1, BODY, False),
    }  # fmt: skip
    entry = AuditEntry.objects.get(verb="run delayed")
    assert (entry.who, entry.count, open_crossings(here), AuditIntent.objects.count()) == ("ana", 2, 0, 0)
    assert (entry.after or {})["rows"] == [str(row.row_id) for row in came], "by the ids that they have there now"


def test_cancelled_delayed_message_lies_in_the_bin_and_can_be_retried(
    there: There, here: Connection, ana: User
) -> None:
    first, second = there.delay(2)
    (done,) = there.act("cancel", [first], ana)
    assert (done.result, there.delays(), there.number(there.orders)) == ("done", [second], 5)
    assert done.archive_id
    message = archived(done.archive_id)
    assert (message.state, message.target, message.headers) == ("discarded", there.orders, HEADERS % 0)
    assert "while it waited" in (message.exception_message or "")
    assert (AuditEntry.objects.get(verb="cancel delayed").count, open_crossings(here)) == (1, 0)
    assert single.act("restore", done.archive_id, ana, "console").result == "done"
    assert single.act("retry", done.archive_id, ana, "console").result == "done"
    assert there.number(there.orders) == 6


def test_delayed_message_in_flight_or_due_otherwise_is_skipped(there: There, ana: User) -> None:
    first, second, third = there.delay(3)
    table = f'{there.dialect.default_schema}."Orders.Delayed"'
    at = {"at": datetime.now(UTC).replace(tzinfo=None)}
    there.session.run(f"update {table} set due = %(at)s where headers like '%%m-1%%'", at)
    with there.session.transaction():
        there.session.run(f"update {table} set body = body where headers like '%%m-0%%'")
        said = there.act("run_now", [first, second, third], ana)
    assert [each.result for each in said] == ["skipped", "skipped", "done"]
    assert there.number(there.orders) == 6


def test_a_delayed_one_without_a_body_wedges_no_queue(there: There, ana: User) -> None:
    (one,) = there.delay(1)
    there.session.run(f'update {there.dialect.default_schema}."Orders.Delayed" set body = null')
    (said,) = there.act("run_now", [one], ana)
    assert (said.result, "without a body" in said.why) == ("failed", True)
    assert (there.delays(), there.number(there.orders)) == ([one], 5)


def test_nothing_delayed_is_acted_on_where_nobody_allowed_it(there: There, ana: User) -> None:
    seen = there.delay(1)
    Queue.objects.update(acts_allowed=False)
    for name in ("run_now", "cancel"):
        with pytest.raises(OperationRefused, match="can be switched on in its settings"):
            there.act(name, seen, ana)


@pytest.mark.chaos
@pytest.mark.parametrize("name", ["run_now", "cancel"])
@pytest.mark.parametrize(("where", "is_done"), PLACES)
def test_a_kill_anywhere_leaves_each_delayed_one_in_one_place_and_audited(
    there: There, here: Connection, archived_console: str, ana: User, name: str, where: str, is_done: bool
) -> None:
    seen = there.delay(3)[:2]
    said = json.dumps([name, there.delayed.schema, [[str(each.row_id), each.due] for each in seen]])
    run_and_kill(said, archived_console, there.dsn, where, ACT_ON_DELAYED, there.dialect.default_schema)
    assert len(there.delays()) == (1 if is_done else 3)
    reconcile.settle()
    assert (len(there.delays()), open_crossings(here)) == (1 if is_done else 3, 0)
    came = there.number(there.orders) - 5 if name == "run_now" else len(archived_rows(here, "discarded"))
    assert came == (2 if is_done else 0)
    assert (AuditEntry.objects.count(), AuditIntent.objects.count()) == (int(is_done), 0)


# --- purge


def purged(operation: Operation) -> Operation:
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


def test_a_queue_is_purged_into_the_bin_and_what_comes_later_stays(there: There, here: Connection, ana: User) -> None:
    operation = purges.prepare(there.orders, ana, "console")
    assert operation.count == 5
    there.fill(2)
    lifecycle.start(operation.pk, ana, "flood of a test")
    operation = purged(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 5, 0)
    assert (there.number(there.orders), open_crossings(here)) == (2, 0)
    rows = archived_rows(here, "discarded")
    assert (len(rows), {row.operation for row in rows}) == (5, {operation.pk})
    assert AuditEntry.objects.get(verb="purge").count == 5
    still = ArchiveFilter(state="discarded", last_operation=operation.pk)
    restored = selection.freeze("restore", still, ana, "console")
    lifecycle.start(restored.pk, ana)
    assert purged(restored).done == 5
    assert single.act("retry", rows[0].id, ana, "console").result == "done"


def test_purge_skips_messages_in_flight(there: There, ana: User) -> None:
    operation = purges.prepare(there.orders, ana, "console")
    lifecycle.start(operation.pk, ana)
    with there.session.transaction():
        assert there.session.all(*there.dialect.queue_store(there.orders).receiving())
        operation = purged(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 4, 1)


def test_a_table_that_was_made_anew_is_not_purged(there: There, ana: User) -> None:
    operation = purges.prepare(there.orders, ana, "console")
    there.session.run(f'drop table {there.dialect.default_schema}."Orders"')
    there.dialect.queue_store(there.orders).create(there.session)
    there.fill(3)
    lifecycle.start(operation.pk, ana)
    operation = purged(operation)
    assert "made anew" in operation.last_error
    assert (operation.done, there.number(there.orders)) == (0, 3)


PURGE = "runner.run_chunk(int(sys.argv[1]), 2)\n"


@pytest.mark.chaos
@pytest.mark.parametrize(("where", "is_done"), PLACES)
def test_a_purge_that_is_killed_goes_on(
    there: There, here: Connection, archived_console: str, ana: User, where: str, is_done: bool
) -> None:
    operation = purges.prepare(there.orders, ana, "console")
    lifecycle.start(operation.pk, ana, "flood of a test")
    run_and_kill(str(operation.pk), archived_console, there.dsn, where, PURGE, there.dialect.default_schema)
    assert there.number(there.orders) == (3 if is_done else 5)
    operation = purged(operation)
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 5, 0)
    rows = archived_rows(here, "discarded")
    assert (len(rows), len({row.row_id for row in rows}), there.number(there.orders)) == (5, 5, 0)
    assert AuditEntry.objects.filter(verb="purge").count() == 1


def test_a_killed_purge_is_ended_by_another_console_on_this_archive(
    there: There, here: Connection, archived_console: str, ana: User, databases: Databases
) -> None:
    """The other console lacks the operation or has another of its number; purged messages are recorded."""
    operation = purges.prepare(there.orders, ana, "console")
    lifecycle.start(operation.pk, ana, "flood of a test")
    run_and_kill(
        str(operation.pk), archived_console, there.dsn, "after the commit there", PURGE, there.dialect.default_schema
    )
    with databases.clone("console") as dsn, databases.as_django(dsn, ("default",)):
        reconcile.settle()
        assert open_crossings(here) == 0
    done = "select queue from messages.operation_item where operation = %(id)s and outcome = 'done'"
    assert [row.queue for row in here.all(done, {"id": operation.pk})] == [*operation.queues] * 2
    assert purged(operation).done == 5


# --- call back


def sent_there(there: There, person: User, number: int = 3) -> tuple[Operation, list[int]]:
    """Let some waiting messages die and be retried; return the operation and their archive ids."""
    moved = there.act("move_out", there.waits(there.orders)[:number], person)
    ids = [each.archive_id for each in moved if each.archive_id]
    operation = selection.freeze("retry", ids, person, "console")
    lifecycle.start(operation.pk, person)
    runner.run(operation.pk)
    assert there.number(there.orders) == 5
    return operation, ids


def call_back(operation: Operation, person: User) -> Operation:
    back = acts.prepare(operation.pk, person, "console")
    lifecycle.start(back.pk, person, "sent too early")
    return back


def test_retried_messages_still_waiting_are_called_back(there: There, here: Connection, ana: User) -> None:
    operation, ids = sent_there(there, ana)
    back = purged(call_back(operation, ana))
    assert (back.state, back.done, back.skipped, back.failed) == (Operation.State.DONE, 3, 0, 0)
    assert (there.number(there.orders), open_crossings(here)) == (2, 0)
    assert {archived(each).state for each in ids} == {"dead"}
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (0, 3), "the retry says what it did not send in the end"
    assert {each.why for each in queries.not_done(here, operation.pk)} == {
        f"Called back by ana, operation {back.pk}, while it waited."
    }
    assert [each.verb for each in store.events(here, ids[0])][-2:] == ["retried", "called back"]
    assert AuditEntry.objects.get(verb="call back").count == 3
    assert single.act("retry", ids[0], ana, "console").result == "done", "and can be retried as before"
    assert there.number(there.orders) == 3


def test_call_back_skips_messages_in_flight_or_changed(there: There, here: Connection, ana: User) -> None:
    operation, ids = sent_there(there, ana)
    back = call_back(operation, ana)
    table = f'{there.dialect.default_schema}."Orders"'
    sent = "select sent_as from messages.operation_item where operation = %(o)s and archive_id = %(a)s"
    in_hand, changed = (here.value(sent, {"o": operation.pk, "a": each}) for each in ids[:2])
    there.session.run(f"update {table} set headers = '{{}}' where id = %(id)s", {"id": changed})
    with there.session.transaction():
        there.session.run(f"update {table} set expires = null where id = %(id)s", {"id": in_hand})
        back = purged(back)
    assert (back.state, back.done, back.skipped, back.failed) == (Operation.State.DONE, 1, 1, 1)
    whys = {each.archive_id: each.why for each in queries.not_done(here, back.pk)}
    assert whys == {ids[0]: archive_call_back.PICKED_UP, ids[1]: archive_call_back.CHANGED}
    assert [archived(each).state for each in ids] == ["retried", "retried", "dead"]
    assert there.number(there.orders) == 4


def test_nothing_is_called_back_from_where_nothing_is_written(
    there: There, here: Connection, ana: User, settings: Settings
) -> None:
    operation, ids = sent_there(there, ana)
    about = settings.PGQUEUE["LOOKED_AT"]["billing"]
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {**about, "WRITABLE": False}}}
    back = purged(call_back(operation, ana))
    assert (back.done, back.failed, there.number(there.orders)) == (0, 3, 5)
    assert "only looked at" in queries.not_done(here, back.pk)[0].why
    assert {archived(each).state for each in ids} == {"retried"}


def test_call_back_under_way_blocks_other_acts_and_is_completed(
    there: There, here: Connection, archived_console: str, ana: User
) -> None:
    operation, ids = sent_there(there, ana)
    back = call_back(operation, ana)
    run_and_kill(
        str(back.pk), archived_console, there.dsn, "after the commit there", schema=there.dialect.default_schema
    )
    done = single.act("retry", ids[0], ana, "console")
    assert done.result == "skipped"
    assert "called back from the database billing" in (done.why or "")
    died = "update messages.message_archive set resolution = 'dead_again', ended_at = now() where id = %(id)s"
    here.run(died, {"id": ids[1]})  # another row's death, with the same message id
    archive = retention.as_of("cluster/1", here.value("select 'messages.message_archive'::regclass::oid::int"))
    retention.prune(here, datetime(2999, 1, 1, tzinfo=UTC), None, archive)
    assert [archived(each).state for each in ids] == ["retried", "dead_again", "retried"]
    back = purged(back)
    assert (back.done, open_crossings(here)) == (3, 0)
    assert {archived(each).state for each in ids} == {"dead"}


@pytest.mark.chaos
@pytest.mark.parametrize(("where", "is_done"), [("after the intent", False), *PLACES])
def test_a_call_back_that_is_killed_anywhere_leaves_each_in_one_place(
    there: There, here: Connection, archived_console: str, ana: User, where: str, is_done: bool
) -> None:
    operation, ids = sent_there(there, ana)
    back = call_back(operation, ana)
    run_and_kill(str(back.pk), archived_console, there.dsn, where, schema=there.dialect.default_schema)
    assert there.number(there.orders) == (2 if is_done else 5)
    reconcile.settle()
    assert open_crossings(here) == 0
    assert {archived(each).state for each in ids} == {"dead" if is_done else "retried"}, "each is in one place"
    back = purged(back)
    assert (back.state, back.done, there.number(there.orders)) == (Operation.State.DONE, 3, 2)
    assert {archived(each).state for each in ids} == {"dead"}
    operation.refresh_from_db()
    assert (operation.done, operation.skipped) == (0, 3)


@pytest.mark.parametrize(("arrived", "state"), [(True, "dead"), (False, "retried")])
def test_a_person_says_whether_they_have_left(
    there: There, here: Connection, archived_console: str, ana: User, arrived: bool, state: str
) -> None:
    operation, ids = sent_there(there, ana)
    back = call_back(operation, ana)
    run_and_kill(
        str(back.pk), archived_console, there.dsn, "before the commit there", schema=there.dialect.default_schema
    )
    here.run("update messages.crossing set mark = 'another 1 1 0/0' where mark is not null")
    reconcile.settle()
    (pending,) = crossings.undecided()
    assert (pending.number, pending.takes_back) == (3, True)
    back.refresh_from_db()
    why = queries.not_done(here, back.pk)[0].why
    assert "Nobody knows whether it was taken out of billing" in why
    crossing_decision.decide(pending.crossing.id, arrived, ana, "console", "I looked")
    assert {archived(each).state for each in ids} == {state}
    back.refresh_from_db()
    assert (back.done, back.failed) == ((3, 0) if arrived else (0, 3))
    if not arrived:
        assert "stays sent" in queries.not_done(here, back.pk)[0].why
