"""A retry into another database on another server: each message arrives once, wherever a process, a connection or a
server fails (docs/decisions/028).
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from pytest_django import Settings

from pgqueue_admin.archive import crossings as crossing_rows
from pgqueue_admin.archive import dead_messages, schema, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.crossing_store import CommitOutcome
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, EngineTablesOlder
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.services.operations import (
    crossings,
    lifecycle,
    queries,
    reconcile,
    runner,
    selection,
    single,
    targets,
)
from pgqueue_admin.services.operations.crossing_decision import decide
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from tests import older_schema
from tests.archived_messages import archived, events_of
from tests.billing import (
    KINDS,
    ORDERS,
    Billing,
    billing_of,
    billing_server,
    failed_there,
    looked_at,
    on_postgresql,
    open_crossings,
    restarted_after_a_crash,
)
from tests.killed_crossing import KILLED, environment, run_and_kill
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by
from tests.relay import Relay
from tests.silent_peer import silent_peer
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
MANY = 300
WAIT_FOR_A_LOCK = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
Connect = Callable[[str], Connection]


@pytest.fixture(scope="module")
def server_there() -> Iterator[PostgreSQL]:
    with billing_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def billing(request: pytest.FixtureRequest, settings: Settings, archive: None) -> Iterator[Billing]:
    with billing_of(request, settings) as there:
        yield there


@pytest.fixture
def here(archived_console: str, connect: Connect) -> Connection:
    return connect(archived_console)


def started(billing: Billing, ana: User, number: int = MANY) -> Operation:
    billing.failed(number)
    operation = selection.freeze("retry", ArchiveFilter(queue=billing.name), ana, "console", "mended")
    assert operation.count == number
    return lifecycle.start(operation.pk, ana)


def is_whole(operation: Operation, billing: Billing, here: Connection, number: int = MANY) -> None:
    """Each message counts once: in the queue, its state, its events, the items and the figures."""
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, number, 0)
    there = billing.arrived()
    assert len(there) == len(set(there)) == number
    about = {"pk": operation.pk}
    sent = here.all("select sent_as from messages.operation_item where operation = %(pk)s", about)
    assert {row.sent_as for row in sent} == {row.id for row in billing.rows()}
    retried = "select count(*) from messages.message_archive where state = 'retried' and operation = %(pk)s"
    assert here.value(retried, about) == events_of(operation.pk) == number
    assert open_crossings(here) == 0


def test_dead_messages_go_back_into_the_queue_they_failed_in(billing: Billing, here: Connection, ana: User) -> None:
    operation = started(billing, ana)
    before = {row.id: row for row in here.all("select id, headers, body from messages.message_archive")}
    runner.run(operation.pk)
    is_whole(operation, billing, here)
    (first,) = queries.items(here, operation.pk, limit=1)
    message = archived(first.archive_id)
    assert (message.state, message.resolved_by) == ("retried", "ana")
    asked = "select sent_as from messages.operation_item where archive_id = %(id)s"
    sent = here.value(asked, {"id": first.archive_id})
    (row,) = [each for each in billing.rows() if each.id == sent]
    assert bytes(row.body) == bytes(before[first.archive_id].body)
    assert "NServiceBus.FailedQ" not in row.headers
    assert "NServiceBus.FailedQ" in before[first.archive_id].headers
    assert row.expires is None


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("where", "there"),
    [
        ("before the intent", 0),
        ("after the intent", 0),
        ("before the mark", 0),
        ("before the commit there", 0),
        ("after the commit there", 100),
        ("within the end", 100),
        ("after the end", 100),
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    billing: Billing, here: Connection, archived_console: str, ana: User, where: str, there: int
) -> None:
    operation = started(billing, ana)
    run_and_kill(str(operation.pk), archived_console, billing, where)
    assert len(billing.arrived()) == there
    reconcile.settle()
    runner.run(operation.pk)
    is_whole(operation, billing, here)


def test_message_on_its_way_refuses_other_acts_after_a_kill(
    billing: Billing, here: Connection, archived_console: str, ana: User
) -> None:
    operation = started(billing, ana, 3)
    run_and_kill(str(operation.pk), archived_console, billing, "after the commit there")
    (one, *_) = billing.failed(3)
    message = archived(one)
    assert (message.state, message.crossing) == ("dead", "billing")
    for kind in ("retry", "discard"):
        done = single.act(kind, one, ana, "console")
        assert done.result == "skipped"
        assert "on its way into the database billing" in (done.why or "")
    reconcile.settle()
    is_whole_but_state(operation, billing, here, 3)


def is_whole_but_state(operation: Operation, billing: Billing, here: Connection, number: int) -> None:
    """Settled before the operation continues: it ends with its next chunk."""
    runner.run(operation.pk)
    is_whole(operation, billing, here, number)


@on_postgresql
@pytest.mark.chaos
def test_a_wire_that_breaks_before_the_commit_arrives(
    billing: Billing, here: Connection, ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = Relay(billing.dsn)
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(relay.dsn)}
    leave, cut = crossing_rows.leave, list[bool]()

    def left(*about: Any) -> None:
        leave(*about)
        if not cut:
            cut.append(True)
            relay.replace()

    monkeypatch.setattr(crossing_rows, "leave", left)
    operation = started(billing, ana)
    try:
        with pytest.raises(DatabaseDown):
            runner.run_chunk(operation.pk, 100)
        runner.run(operation.pk)
        is_whole(operation, billing, here)
    finally:
        relay.end()


@on_postgresql
@pytest.mark.chaos
def test_an_answer_to_the_commit_that_never_comes(
    billing: Billing, here: Connection, archived_console: str, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was committed but the session was lost before the answer: the outcome is queried."""
    operation, asked, told = started(billing, ana), list[CommitOutcome](), crossings._told

    def ask(crossing: crossing_rows.Crossing) -> CommitOutcome:
        asked.append(told(crossing))
        return asked[-1]

    monkeypatch.setattr(crossings, "_told", ask)
    with postgresql().connect(billing.dsn) as admin:
        admin.run("set synchronous_commit = off")
        with nobody_stands_by(admin):
            process = subprocess.Popen(
                [sys.executable, "-c", KILLED, str(operation.pk), "nowhere"], env=environment(archived_console, billing)
            )
            until(lambda: admin.one(WAITS), what="a commit that waits")
            assert crossings.settle() == set(), "somebody has it in hand"
            process.kill()
            process.wait()
            until(lambda: held_by_nobody(here), what="its session has ended")
            assert crossings.settle() == set()
            assert asked[-1].state == "in_progress", "and it is waited for"
            end_who_waits(admin)
        until(lambda: not admin.one(WAITS), what="the end of it")
    assert len(billing.arrived()) == 100
    reconcile.settle()
    assert asked[-1].state == "committed"
    runner.run(operation.pk)
    is_whole(operation, billing, here)


def held_by_nobody(here: Connection) -> bool:
    asked = "select count(*) from pg_locks where locktype = 'advisory' and classid::int8 ="
    return here.value(f"{asked} hashtext('pgqueue crossing')::int8 & 4294967295") == 0


@on_postgresql
@pytest.mark.chaos
@pytest.mark.parametrize("is_committed", [False, True])
def test_a_server_that_crashes_at_the_commit(
    billing: Billing, here: Connection, ana: User, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """Its committed data is there after recovery, and the outcome can be queried."""
    place, name = (crossings, "_finish") if is_committed else (crossing_rows, "leave")
    real, crashed = getattr(place, name), list[bool]()

    def at(*about: Any) -> None:
        is_first = not crashed
        crashed.append(True)
        if not (is_committed and is_first):
            real(*about)
        if is_first:
            restarted_after_a_crash(billing.server)
        if is_committed and is_first:
            raise DatabaseDown("this process knows no more")

    monkeypatch.setattr(place, name, at)
    operation = started(billing, ana)
    with pytest.raises(DatabaseError):
        runner.run_chunk(operation.pk, 100)
    assert len(billing.arrived()) == (100 if is_committed else 0)
    runner.run(operation.pk)
    is_whole(operation, billing, here)


@on_postgresql
@pytest.mark.chaos
def test_two_workers_killed_again_and_again(
    billing: Billing, here: Connection, archived_console: str, ana: User
) -> None:
    operation = started(billing, ana)
    loop = KILLED.replace(
        "runner.run_chunk(int(sys.argv[1]), 100)", "while True: runner.run_chunk(int(sys.argv[1]), 7)"
    )
    given = [sys.executable, "-c", loop, str(operation.pk), "nowhere"]
    for kill in range(1, 6):
        pair = [subprocess.Popen(given, env=environment(archived_console, billing)) for _ in range(2)]
        until(lambda kill=kill: len(billing.arrived()) >= 40 * kill, what=f"{40 * kill} there")  # type: ignore[misc]
        for each in pair:
            each.kill()
            each.wait()
    until(lambda: held_by_nobody(here), what="their sessions have ended")
    reconcile.settle()
    runner.run(operation.pk)
    is_whole(operation, billing, here)


@on_postgresql
@pytest.mark.parametrize(("what", "is_there"), [("another server", True), ("a time before", False)])
def test_crossing_with_an_unknown_outcome_waits_for_a_person(
    billing: Billing, here: Connection, archived_console: str, ana: User, viewer: User, what: str, is_there: bool
) -> None:
    operation = started(billing, ana, 3)
    run_and_kill(str(operation.pk), archived_console, billing, "after the commit there")
    (mark,) = (row.mark for row in here.all("select mark from messages.crossing"))
    cluster, timeline, xid, lsn = mark.split()
    other = {"another server": f"1 {timeline} {xid} {lsn}", "a time before": f"{cluster} {timeline} {xid} FF/0"}
    here.run("update messages.crossing set mark = %(mark)s", {"mark": other[what]})
    reconcile.settle()
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, 0, 3)
    assert len(billing.arrived()) == 3, "nothing is sent again"
    (item, *_) = queries.items(here, operation.pk)
    assert "Nobody knows whether it was put into billing" in item.why
    refused = single.act("retry", item.archive_id, ana, "console")
    assert (refused.result, "a person decides" in (refused.why or "")) == ("skipped", True)
    assert archived(item.archive_id).state == "dead"
    (one,) = crossings.undecided()
    assert one.rows == {f"{billing.orders.schema}.Orders": sorted({row.id for row in billing.rows()})}
    with pytest.raises(OperationNotAllowed):
        decide(one.crossing.id, is_there, viewer, "console", "seen there")
    said = StringIO()
    call_command("crossings", "list", stdout=said)
    assert f"{one.crossing.id}  3 messages put into billing?" in said.getvalue()
    call_command("crossings", "arrived" if is_there else "lost", str(one.crossing.id), "--reason", "seen", "--as", "bo")
    with pytest.raises(OperationRefused, match="no crossing"):
        decide(one.crossing.id, is_there, ana, "console", "seen there")
    operation.refresh_from_db()
    assert (operation.done, operation.failed) == ((3, 0) if is_there else (0, 3))
    assert archived(item.archive_id).state == ("retried" if is_there else "dead")
    whys = {each.why for each in queries.items(here, operation.pk)}
    assert whys == ({None} if is_there else {"It was not put into billing, as bo has found: it may be retried."})
    entry = AuditEntry.objects.get(verb="decide")
    assert (entry.who, entry.count, entry.reason, (entry.after or {})["arrived"]) == ("bo", 3, "seen", is_there)
    assert open_crossings(here) == 0


def test_crossing_that_cannot_be_settled_holds_up_no_other(
    billing: Billing, here: Connection, archived_console: str, ana: User
) -> None:
    """Another session locks its message for longer than an act waits."""
    ids = billing.failed(2)
    for each in ids:
        operation = selection.freeze("retry", [each], ana, "console", "mended")
        lifecycle.start(operation.pk, ana)
        run_and_kill(str(operation.pk), archived_console, billing, "after the commit there")
    with here.transaction():
        here.all("select id from messages.message_archive where id = %(id)s for update", {"id": ids[0]})
        reconcile.settle()
        assert [archived(each).state for each in ids] == ["dead", "retried"]
    reconcile.settle()
    assert [archived(each).state for each in ids] == ["retried", "retried"]
    assert open_crossings(here) == 0


def test_crossing_that_its_queue_refused_needs_no_decision(
    billing: Billing, here: Connection, archived_console: str, ana: User
) -> None:
    """Whatever became of the transaction: none of its messages is in the queue."""
    operation = started(billing, ana, 3)
    with billing.refusing():
        run_and_kill(str(operation.pk), archived_console, billing, "after the commit there")
    here.run("update messages.crossing set mark = '1 ' || substr(mark, strpos(mark, ' ') + 1)")
    reconcile.settle()
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, 0, 3)
    (item, *_) = queries.items(here, operation.pk)
    assert "did not take it" in item.why
    assert (archived(item.archive_id).state, open_crossings(here), billing.arrived()) == ("dead", 0, [])


@on_postgresql
def test_a_queue_there_that_refuses_fails_its_own(billing: Billing, here: Connection, ana: User) -> None:
    (one, *_) = billing.failed(3)
    operation = started(billing, ana, 3)
    row = here.one("select headers from messages.message_archive where id = %(id)s", {"id": one})
    assert row is not None
    with postgresql().connect(billing.dsn) as there:
        there.run("""create function public.choosy() returns trigger language plpgsql as $$ begin
            if new.headers like '%%' || tg_argv[0] || '%%' then return null; end if; return new; end $$""")
        said = f"execute function public.choosy('{archived(one).message_id}')"
        there.run(f'create trigger choosy before insert on public."Orders" for each row {said}')
        try:
            runner.run(operation.pk)
        finally:
            there.run('drop trigger choosy on public."Orders"; drop function public.choosy()')
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed) == (Operation.State.DONE, 2, 1)
    (failed,) = queries.not_done(here, operation.pk)
    assert (failed.archive_id, "It took 0 of 1" in failed.why) == (one, True)
    assert archived(one).state == "dead"
    assert len(billing.arrived()) == 2


def test_a_database_that_is_down_is_waited_for(
    billing: Billing, here: Connection, ana: User, settings: Settings
) -> None:
    operation = started(billing, ana, 3)
    away = {**settings.PGQUEUE, "LOOKED_AT": billing.away}
    whole, settings.PGQUEUE = settings.PGQUEUE, away
    with pytest.raises(DatabaseDown):
        runner.run(operation.pk)
    operation.refresh_from_db()
    assert operation.state == Operation.State.RUNNING
    assert open_crossings(here) == 0
    settings.PGQUEUE = whole
    runner.run(operation.pk)
    is_whole(operation, billing, here, 3)


@pytest.mark.parametrize("by_rule", [False, True])
def test_message_is_not_locked_while_a_silent_database_is_asked(
    here: Connection, connect: Connect, archived_console: str, ana: User, settings: Settings, by_rule: bool
) -> None:
    """The database accepts connections and never answers. It is queried before the message is locked."""
    (one,) = failed_there(1)
    if by_rule:
        here.run("update messages.message_archive set target_schema = 'public', target_table = 'Billing'")
    other, raised = connect(archived_console), list[BaseException]()
    redirect = dead_messages.Redirect(ORDERS) if by_rule else None

    def retry() -> None:
        try:
            dead_messages.retry(other, [one], "ana", judge=targets.judge_with(()), redirect=lambda row: redirect)
        except BaseException as error:
            raised.append(error)
        finally:
            connections.close_all()

    with silent_peer() as peer:
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(peer.dsn)}
        asks = threading.Thread(target=retry)
        asks.start()
        assert peer.met.wait(30), "it is asked"
        with here.transaction():
            held = here.one("select id from messages.message_archive where id = %(id)s for update nowait", {"id": one})
        assert asks.is_alive(), "the answer is still waited for"
    asks.join(60)
    queue_databases.close()
    assert held is not None
    assert [type(each) for each in raised] == [DatabaseDown]
    assert (archived(one).state, open_crossings(here)) == ("dead", 0)


def test_a_message_that_was_sent_elsewhere_meanwhile_goes_nowhere_unasked(here: Connection, ana: User) -> None:
    """Between the query and the lock another session changed its target."""
    (one,) = failed_there(1)

    def judge(connection: Connection, asked: Any) -> dict[Any, str]:
        if list(asked) == [ORDERS]:
            here.run("update messages.message_archive set target_table = 'Other' where id = %(id)s", {"id": one})
        return {}

    (refused,) = dead_messages.retry(here, [one], "ana", judge=judge)
    assert (refused.result, refused.why) == ("failed", dead_messages.MOVED)
    assert (archived(one).state, open_crossings(here)) == ("dead", 0)


def test_read_only_database_takes_no_retry(billing: Billing, here: Connection, ana: User, settings: Settings) -> None:
    there = billing.looked_at(writable=False)
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there}
    (one,) = billing.failed(1)
    refused = single.act("retry", one, ana, "console")
    assert (refused.result, "are only looked at" in (refused.why or "")) == ("failed", True)
    with (
        pytest.raises(PermissionError, match="billing is only looked at"),
        queue_databases.database_of(billing.orders).write_session(),
    ):
        pass
    assert billing.arrived() == []


def test_preview_of_targets_matches_the_act(billing: Billing, here: Connection, ana: User) -> None:
    operation = started(billing, ana, 3)
    (target,) = queries.retry_targets(here, operation).all
    assert (target.target.name, target.messages, target.target.blocking_reason) == (billing.name, 3, "")
    with billing.without_queue():
        (target,) = queries.retry_targets(here, operation).all
        assert "there is no queue table 'Orders'" in target.target.blocking_reason
        runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.failed, open_crossings(here)) == (3, 0)


@on_postgresql
def test_engine_tables_of_a_version_before_say_what_is_missing(billing: Billing, here: Connection, ana: User) -> None:
    (one,) = billing.failed(1)
    older_schema.set_back(here, 8)
    queue_databases.close()
    refused = single.act("retry", one, ana, "console")
    assert (refused.result, "run manage.py engine_schema" in (refused.why or "")) == ("failed", True)
    with pytest.raises(EngineTablesOlder, match=r"run manage\.py engine_schema"):
        single.act("discard", one, ana, "console")
    assert schema.install(here).did == "updated"
    assert single.act("discard", one, ana, "console").result == "done"


@on_postgresql
def test_a_role_that_was_granted_older_tables_reads_the_archive(billing: Billing, here: Connection, ana: User) -> None:
    """Grants are per table: a role without those on new tables lacks only messages in transit."""
    (one,) = billing.failed(1)
    here.run("create role narrow")
    try:
        here.run("grant usage on schema messages to narrow; grant select on messages.message_archive to narrow")
        with here.transaction():
            here.run("set local role narrow")
            message = store.get(here, one)
        assert message is not None
        assert (message.state, message.crossing) == ("dead", None)
    finally:
        here.run("drop owned by narrow; drop role narrow")


@on_postgresql
def test_a_role_that_was_granted_some_of_the_tables_crosses_nothing(
    billing: Billing, here: Connection, connect: Connect, archived_console: str, ana: User
) -> None:
    """Edits of users are in the third table, which every crossing reads."""
    (one,) = billing.failed(1)
    narrow = connect(archived_console)
    here.run("create role narrow")
    try:
        here.run("grant usage on schema messages to narrow; grant select on messages.message_archive to narrow")
        here.run("grant select on messages.crossing, messages.crossing_put to narrow")
        with narrow.transaction():
            narrow.run("set local role narrow")
            judged = targets.judge(narrow, [billing.orders])[billing.orders]
            message = store.get(narrow, one)
        assert judged.refusal() == crossing_rows.NOT_KEPT
        assert message is not None
    finally:
        here.run("drop owned by narrow; drop role narrow")


def test_act_that_waited_for_the_row_sees_the_crossing(
    here: Connection, connect: Connect, archived_console: str, archive: None
) -> None:
    """A statement that waits for a row reads other tables by its older snapshot."""
    (one,) = failed_there(1)
    other = connect(archived_console)
    found: list[Any] = []

    def discard() -> None:
        found.extend(dead_messages.discard(other, [one], "ana"))

    with here.transaction():
        (held,) = dead_messages.hold(here, [one])
        crossing_rows.put_back(here, {ORDERS: [held]}, (), "ana", None, False)
        waits = threading.Thread(target=discard)
        waits.start()
        until(lambda: here.value(WAIT_FOR_A_LOCK) > 0, what="the other act waits for the row")
    waits.join(30)
    assert [(each.result, "on its way" in (each.why or "")) for each in found] == [("skipped", True)]
    assert archived(one).state == "dead"


@on_postgresql
def test_no_crash_gives_the_number_of_a_marked_transaction_to_another(billing: Billing) -> None:
    """Otherwise a transaction that never committed would look committed once its number is used again."""
    store = postgresql().crossings
    put = "insert into public.\"Orders\" (id, headers, body) values (gen_random_uuid(), '{}', null)"
    dsn = billing.dsn
    with (
        postgresql().connect(dsn) as one, postgresql().connect(dsn) as other, suppress(DatabaseError), one.transaction()
    ):  # fmt: skip
        kept = store.mark(one)
        one.run(put)
        store.pin(other)
        restarted_after_a_crash(billing.server)
    with postgresql().connect(billing.dsn) as there:
        there.run("create table public.of_somebody_else ()")
        there.run("drop table public.of_somebody_else")
        assert store.commit_outcome(there, kept).state == "not_committed"


@on_postgresql
def test_commit_outcome_is_asked_of_the_other_database(billing: Billing) -> None:
    """PostgreSQL's status of a transaction: while it runs, and for ever after."""
    store = postgresql().crossings
    with postgresql().connect(billing.dsn) as one, postgresql().connect(billing.dsn) as other:
        with one.transaction():
            kept = store.mark(one)
            assert store.commit_outcome(other, kept).state == "in_progress"
        with suppress(ValueError), one.transaction():
            undone = store.mark(one)
            raise ValueError("over")
        assert [store.commit_outcome(other, each).state for each in (kept, undone)] == ["committed", "not_committed"]
