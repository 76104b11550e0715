"""Acts on waiting messages: exactly the row that was seen, once, and never one that a receiver holds."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import dead_messages, foreign_code, held_row, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import AuditEntry, Endpoint, Queue
from pgqueue_admin.services import waiting_elsewhere, waiting_messages
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.transport import Endpoint as Engine
from tests.row_filtering_trigger import leaving_out
from tests.waiting import until

FROM, TO = Address("public", "From"), Address("public", "To")
DELAYED = Address("public", "From.Delayed")
HOSTILE = '{"NServiceBus.MessageId": "\\u0000\\u202e", "a": "<script>\'\\u202e"}'
BODY = b"\x00\xff<script>\\x00 \xf0\x9f\x98\x80'\""
Connect = Callable[[], Connection]


@pytest.fixture
def connect(archived_console: str) -> Iterator[Connect]:
    opened: list[Any] = []

    def open_one() -> Connection:
        opened.append(postgresql().connect(archived_console, for_handlers=True))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def session(connect: Connect, archived_console: str) -> Connection:
    for queue in (FROM, TO):
        Engine(queue.table, archived_console).create_queues()
        Endpoint.objects.create(name=queue.table, schema="public", table=queue.table)
        Queue.objects.create(schema="public", table=queue.table, kind="input")
    return connect()


def waits(session: Connection, headers: str = HOSTILE, body: bytes | None = BODY, expires: str = "infinity") -> SeenRow:
    asked = {"id": uuid4(), "headers": headers, "body": body, "expires": expires}
    put = (
        'insert into "From" (id, headers, body, expires) values (%(id)s, %(headers)s, %(body)s, %(expires)s::timestamp)'
    )
    row = session.one(f"{put} returning id, seq", asked)
    assert row
    return SeenRow(FROM, row.id, row.seq)


def delayed(session: Connection, due: str = "2999-01-01 00:00:00+00", headers: str = HOSTILE) -> SeenRow:
    put = (
        'insert into "From.Delayed" (headers, body, due) values (%(h)s, %(b)s, %(due)s) returning id, due::text as due'
    )
    row = session.one(put, {"h": headers, "b": BODY, "due": due})
    assert row
    return SeenRow(DELAYED, row.id, due=row.due)


def count(session: Connection, table: str) -> int:
    return int(session.value(f'select count(*) from "{table}"'))


def act(name: str, seen: SeenRow | list[SeenRow], person: User, **more: Any) -> list[waiting_elsewhere.ActOutcome]:
    rows = seen if isinstance(seen, list) else [seen]
    return waiting_messages.act(name, rows[0].table, rows, person, "console", **more)


def test_a_discarded_one_lies_in_the_bin_as_it_was_and_comes_back(session: Connection, ana: User) -> None:
    listener = session.value("select count(*) from messages.message_archive where state = 'dead'")
    seen = waits(session)
    (done,) = act("discard", seen, ana, reason="junk")
    assert (done.result, count(session, "From")) == ("done", 0)
    assert done.archive_id
    row: Any = session.one("select * from messages.message_archive where id = %(id)s", {"id": done.archive_id})
    assert (row.state, row.result, row.resolved_by, row.headers, bytes(row.body)) == (
        "discarded", "rejected", "ana", HOSTILE, BODY,
    )  # fmt: skip
    archived = "from messages.message_archive where id = %(id)s"
    kept = "select row_id, expires::text, ingested_from, queue, target_table " + archived
    where = ('"public"."From"', '"public"."From"', "From")
    assert tuple(session.one(kept, {"id": done.archive_id}) or ()) == (seen.row_id, "infinity", *where)
    assert [(event.verb, event.who) for event in store.events(session, done.archive_id)] == [("discarded", "ana")]
    entry = AuditEntry.objects.get(verb="discard")
    assert (entry.who, entry.subject, entry.reason, entry.count) == ("ana", '"public"."From"', "junk", 1)
    assert entry.before == {"queue": '"public"."From"', "rows": [{"row_id": str(seen.row_id), "seq": seen.seq}]}
    assert entry.after == {"archive_ids": [done.archive_id]}
    assert session.value("select count(*) from messages.message_archive where state = 'dead'") == listener
    dead_messages.restore(session, [done.archive_id], "ana")
    assert [each.result for each in dead_messages.retry(session, [done.archive_id], "ana")] == ["done"]
    assert bytes(session.value('select body from "From"')) == BODY


def test_discard_of_a_waiting_message_notifies_no_death(session: Connection, connect: Connect, ana: User) -> None:
    listener = connect()
    listener.run("listen dead_message")
    act("discard", waits(session), ana)
    (done,) = act("move_out", waits(session), ana)
    listener.run("select 1")
    assert [each.payload for each in listener.notifications(5)][:1] == [str(done.archive_id)], "the dead one is told"


def test_history_reads_a_message_discarded_while_waiting_as_discarded(session: Connection, ana: User) -> None:
    mine = {act(name, waits(session), ana)[0].archive_id for name in ("discard", "move_out")}
    (archive, *_) = sources(session)
    batch = planning.plan_batch(session, archive)
    assert batch
    rows = [row for part in selects(session, batch, 1) for row in session.all(part)]
    numbers = "select seq from messages.message_archive where id = any(%(ids)s::integer[])"
    seqs = {row.seq for row in session.all(numbers, {"ids": list(mine)})}
    assert sorted(row.result for row in rows if row.seq in seqs) == ["discarded", "failed"]


def test_message_moved_to_the_dead_says_that_it_had_not_failed(session: Connection, ana: User) -> None:
    (done,) = act("move_out", waits(session), ana)
    dead = store.get(session, done.archive_id or 0)
    assert dead
    assert (dead.state, dead.exception_type, dead.attempts) == ("dead", None, None)
    assert dead.exception_message == "Moved out of From by ana while it waited: it had not failed."


def test_a_moved_row_is_the_same_in_every_column_but_seq(session: Connection, ana: User) -> None:
    for queue in ("From", "To"):
        add = f"alter table \"{queue}\" add column bodystring text generated always as (encode(body, 'escape')) stored"
        session.run(add)
        session.run(f'alter table "{queue}" add column tenant text, add column "Odd ""name" integer')
    seen = waits(session)
    session.run('update "From" set tenant = \'north\', "Odd ""name" = 7')
    columns = 'id, expires::text, headers, body, bodystring, tenant, "Odd ""name"'
    before = session.one(f'select {columns} from "From"')
    (done,) = act("move", seen, ana, target=TO)
    assert done.result == "done", done.why
    assert session.one(f'select {columns} from "To"') == before
    assert count(session, "From") == 0
    assert (AuditEntry.objects.get(verb="move").after or {})["queue"] == '"public"."To"'


@pytest.mark.parametrize("name", ["move", "discard", "move_out"])
def test_a_column_that_has_no_place_there_is_refused_by_name(session: Connection, ana: User, name: str) -> None:
    session.run('alter table "From" add column tenant text')
    target = {"target": TO} if name == "move" else {}
    lost, empty = waits(session), waits(session)
    session.run("update \"From\" set tenant = 'north' where seq = %(seq)s", {"seq": lost.seq})
    refused, done = act(name, [lost, empty], ana, **target)
    assert (refused.result, done.result) == ("failed", "done")
    assert "tenant" in refused.why
    assert session.value('select tenant from "From"') == "north"


@pytest.mark.parametrize("name", ["move", "discard", "move_out"])
def test_message_in_flight_is_skipped_at_once(session: Connection, connect: Connect, ana: User, name: str) -> None:
    seen, receiver = waits(session), connect()
    target = {"target": TO} if name == "move" else {}
    with receiver.transaction():
        receiver.run('delete from "From" where seq = %(seq)s', {"seq": seen.seq})
        (left,) = act(name, seen, ana, **target)
        assert (left.result, left.why) == ("skipped", waiting_elsewhere.IN_HAND)
    (gone,) = act(name, seen, ana, **target)
    assert (gone.result, gone.why) == ("skipped", waiting_elsewhere.IN_HAND)
    assert count(session, "To") == 0
    assert not AuditEntry.objects.exclude(noun="person").exists()


def test_a_row_that_came_back_with_another_seq_is_another(session: Connection, ana: User) -> None:
    seen = waits(session)
    session.run('update "From" set seq = seq + 1000')
    assert [each.result for each in act("discard", seen, ana)] == ["skipped"]
    assert count(session, "From") == 1


def test_two_at_once_do_it_once(session: Connection, connect: Connect, ana: User) -> None:
    """The second runs while the first has deleted and not committed: it skips the row without waiting."""
    seen, slow = waits(session), connect()
    slow.run("create function public.hold() returns trigger language plpgsql as $$ begin"
             " perform pg_catalog.pg_advisory_xact_lock(77); return new; end $$")  # fmt: skip
    slow.run('create trigger hold before insert on public."To" for each row execute function public.hold()')
    found: list[waiting_elsewhere.ActOutcome] = []
    with slow.transaction():
        slow.run("select pg_advisory_xact_lock(77)")
        first = threading.Thread(target=lambda: found.extend(_in_thread(seen, ana)))
        first.start()
        until(lambda: session.value("select count(*) from pg_locks where locktype = 'advisory' and not granted") == 1)
        assert [each.result for each in act("move", seen, ana, target=TO)] == ["skipped"]
    first.join(30)
    assert [each.result for each in found] == ["done"]
    assert (count(session, "From"), count(session, "To")) == (0, 1)


def test_lost_session_makes_the_outcome_unknown_and_audited(session: Connection, connect: Connect, ana: User) -> None:
    seen, blocker = [waits(session), waits(session)], connect()
    session.run(
        "create function public.hold() returns trigger language plpgsql as $$ begin"
        " perform pg_catalog.pg_advisory_xact_lock(78); return new; end $$"
    )
    session.run('create trigger hold before insert on public."To" for each row execute function public.hold()')
    found: list[waiting_elsewhere.ActOutcome] = []
    with blocker.transaction():
        blocker.run("select pg_advisory_xact_lock(78)")
        acting = threading.Thread(target=lambda: found.extend(_in_thread(seen, ana)))
        acting.start()
        waits_there = "from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        until(lambda: session.value(f"select count(*) {waits_there}") == 1)
        session.run(f"select pg_terminate_backend(pid) {waits_there}")
        acting.join(30)
    assert [each.result for each in found] == ["unknown", "failed"]
    assert (count(session, "From"), count(session, "To")) == (2, 0)
    entry = AuditEntry.objects.get(verb="move")
    assert [row["seq"] for row in (entry.after or {})["unknown"]] == [seen[0].seq]


@pytest.mark.parametrize("name", ["move", "run_now"])
def test_receiver_and_mover_go_on_beside_an_act_that_is_held_up(
    session: Connection, connect: Connect, ana: User, archived_console: str, name: str
) -> None:
    target = "To" if name == "move" else "From"
    seen = waits(session) if name == "move" else delayed(session, due="2001-01-01 00:00:00+00")
    other = waits(session) if name == "move" else delayed(session, due="2001-01-02 00:00:00+00")
    session.run(
        "create function public.hold() returns trigger language plpgsql as $$ begin"
        f" if new.id = '{seen.row_id}' then perform pg_catalog.pg_advisory_xact_lock(79); end if; return new; end $$"
    )
    session.run(f'create trigger hold before insert on public."{target}" for each row execute function public.hold()')
    blocker, receiver, engine = connect(), connect(), Engine("From", archived_console)
    receiver.run("set lock_timeout = '2s'")
    more = {"target": TO} if name == "move" else {}
    found: list[waiting_elsewhere.ActOutcome] = []
    with blocker.transaction():
        blocker.run("select pg_advisory_xact_lock(79)")
        acting = threading.Thread(target=lambda: found.extend(_in_thread(seen, ana, name, **more)))
        acting.start()
        until(lambda: session.value("select count(*) from pg_locks where locktype = 'advisory' and not granted") == 1)
        with receiver.transaction():
            if name == "run_now":
                assert engine.delayed.move_due(receiver) == 1, "the other one"
            received = engine.queue.receive(receiver)
        assert received
        assert received.row_id == str(other.row_id)
    acting.join(30)
    assert [each.result for each in found] == ["done"]
    assert session.value(f'select count(*) from "{target}" where id = %(id)s', {"id": seen.row_id}) == 1


def test_an_id_that_lies_in_the_target_already_is_refused(session: Connection, ana: User) -> None:
    seen = waits(session)
    session.run("insert into \"To\" (id, headers, body) values (%(id)s, '{}', '')", {"id": seen.row_id})
    assert [each.result for each in act("move", seen, ana, target=TO)] == ["failed"]
    assert (count(session, "From"), count(session, "To")) == (1, 1)


def test_a_null_body_wedges_no_other_queue(session: Connection, ana: User) -> None:
    seen = waits(session, body=None)
    (refused,) = act("move", seen, ana, target=TO)
    assert "it would wedge To" in refused.why
    (done,) = act("discard", seen, ana)
    dead = store.get(session, done.archive_id or 0)
    assert dead
    assert dead.body_bytes is None


def _in_thread(
    seen: SeenRow | list[SeenRow], person: User, name: str = "move", **more: Any
) -> list[waiting_elsewhere.ActOutcome]:
    from django.db import connections

    try:
        return act(name, seen, person, **(more or ({"target": TO} if name == "move" else {})))
    finally:
        connections.close_all()


def test_failed_act_leaves_the_row_unchanged(session: Connection, ana: User) -> None:
    seen = waits(session)
    before = session.one('select * from "From"')
    session.run("create function public.no() returns trigger language plpgsql as $$ begin raise 'no'; end $$")
    session.run('create trigger no after insert on public."To" for each row execute function public.no()')
    session.run("create trigger no before update on messages.message_archive for each row execute function public.no()")
    for name, target in (("move", {"target": TO}), ("discard", {})):
        (failed,) = act(name, seen, ana, **target)
        assert failed.result == "failed"
        assert session.one('select * from "From"') == before
    assert not AuditEntry.objects.filter(noun="message").exists()


@pytest.mark.parametrize(("table", "when"), [("From", "delete"), ("To", "insert")])
def test_a_table_that_leaves_the_row_out_gives_it_back(session: Connection, ana: User, table: str, when: str) -> None:
    seen = waits(session, headers='{"a": "leave"}')
    leaving_out(session, f'public."{table}"', when, "leave")
    (failed,) = act("move", seen, ana, target=TO)
    assert failed.result == "failed"
    assert (count(session, "From"), count(session, "To")) == (1, 0)


def test_a_queue_that_is_gone_is_said(session: Connection, ana: User) -> None:
    seen = waits(session)
    session.run('drop table "To"')
    with pytest.raises(OperationRefused, match=r"Nothing was moved\. Its queue is gone"):
        act("move", seen, ana, target=TO)
    session.run('drop table "From"')
    with pytest.raises(OperationRefused, match=r"Nothing was discarded\. There is no queue table From now\."):
        act("discard", seen, ana)


def test_a_locked_table_fails_soon_and_all_of_them(session: Connection, connect: Connect, ana: User) -> None:
    seen, owner = [waits(session), waits(session)], connect()
    with owner.transaction():
        owner.run('lock table "From" in share mode')
        found = act("discard", seen, ana)
    assert [each.result for each in found] == ["failed", "failed"]
    assert count(session, "From") == 2


def test_a_foreign_queue_only_where_it_is_switched_on(session: Connection, ana: User) -> None:
    seen = waits(session)
    Endpoint.objects.filter(name="From").update(ours=False)
    with pytest.raises(OperationRefused, match="No endpoint of this console receives from From"):
        act("discard", seen, ana)
    Queue.objects.filter(table="From").update(acts_allowed=True)
    assert [each.result for each in act("discard", seen, ana)] == ["done"]


@pytest.mark.parametrize("name", ["move", "discard", "move_out"])
def test_a_viewer_may_not(session: Connection, viewer: User, name: str) -> None:
    with pytest.raises(OperationNotAllowed, match="needs the right"):
        act(name, waits(session), viewer, target=TO)
    assert count(session, "From") == 1


def test_code_of_another_role_is_not_run(session: Connection, ana: User) -> None:
    session.run("create role somebody")
    try:
        session.run("create function public.theirs() returns trigger language plpgsql as $$ begin return old; end $$")
        session.run("alter function public.theirs() owner to somebody")
        session.run(
            'create trigger theirs before delete on public."From" for each row execute function public.theirs()'
        )
        (refused,) = act("discard", waits(session), ana)
        assert refused.result == "failed"
        assert "trigger theirs of role somebody" in refused.why
        assert count(session, "From") == 1
    finally:
        session.run("drop function if exists public.theirs() cascade")
        session.run("drop role somebody")


def test_act_refused_by_the_database_shows_its_error(session: Connection, ana: User) -> None:
    """A trigger's refusal stands for any missing right: the row stays, and the server's error is shown."""
    session.run("create function public.no() returns trigger language plpgsql as $$ begin raise 'not here'; end $$")
    session.run('create trigger no before delete on public."From" for each row execute function public.no()')
    (failed,) = act("discard", waits(session), ana)
    assert failed.result == "failed"
    assert "not here" in failed.why
    assert count(session, "From") == 1


def test_a_delayed_one_goes_now_as_it_would_when_due(session: Connection, ana: User) -> None:
    seen = delayed(session)
    (done,) = act("run_now", seen, ana)
    assert done.result == "done", done.why
    row: Any = session.one('select id, expires, headers, body from "From"')
    assert (row.id, row.expires, row.headers, bytes(row.body)) == (seen.row_id, None, HOSTILE, BODY)
    assert count(session, "From.Delayed") == 0
    assert AuditEntry.objects.get(verb="run delayed").before == {
        "queue": '"public"."From.Delayed"', "rows": [{"row_id": str(seen.row_id), "due": seen.due}],
    }  # fmt: skip


def test_run_now_runs_no_code_of_other_roles(session: Connection, ana: User) -> None:
    """Foreign code attached to the target queue would run with our rights: the message stays until it is due."""
    seen = delayed(session)
    session.run("""
        do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
        create function public.spy() returns trigger language plpgsql as $$ begin return new; end $$;
        alter function public.spy() owner to neighbour;
        create trigger spies before insert on public."From" for each row execute function public.spy();
    """)
    with pytest.raises(OperationRefused, match="trigger spies of role neighbour"):
        act("run_now", seen, ana)
    assert count(session, "From.Delayed") == 1


def test_a_cancelled_one_lies_in_the_bin_and_comes_back_to_its_queue(session: Connection, ana: User) -> None:
    seen = delayed(session, due="infinity")
    (done,) = act("cancel", seen, ana)
    assert done.result == "done", done.why
    row = store.get(session, done.archive_id or 0)
    assert row
    assert (row.state, row.target, row.headers) == ("discarded", FROM, HOSTILE)
    dead_messages.restore(session, [row.id], "ana")
    dead_messages.retry(session, [row.id], "ana")
    assert bytes(session.value('select body from "From"')) == BODY


@pytest.mark.parametrize("name", ["run_now", "cancel"])
def test_delayed_message_in_flight_or_delayed_anew_is_skipped(
    session: Connection, connect: Connect, ana: User, name: str
) -> None:
    seen, mover = delayed(session), connect()
    with mover.transaction():
        mover.run('select from "From.Delayed" for update')
        assert [each.result for each in act(name, seen, ana)] == ["skipped"]
    session.run("update \"From.Delayed\" set due = due + interval '1 microsecond'")
    assert [each.result for each in act(name, seen, ana)] == ["skipped"]
    assert (count(session, "From.Delayed"), count(session, "From")) == (1, 0)


def test_an_id_that_lies_in_the_queue_already_becomes_another(session: Connection, ana: User) -> None:
    """As the mover does: otherwise the insert would be refused, and the message could never be sent."""
    seen = delayed(session)
    session.run("insert into \"From\" (id, headers, body) values (%(id)s, '{}', null)", {"id": seen.row_id})
    assert [each.result for each in act("run_now", seen, ana)] == ["done"]
    assert count(session, "From") == 2


def test_no_trigger_can_be_added_between_look_and_act(session: Connection, connect: Connect) -> None:
    """A row lock does not prevent adding a trigger."""
    seen, other = waits(session), connect()
    other.run("create function public.spy() returns trigger language plpgsql as $$ begin return old; end $$")
    other.run("set lock_timeout = '50ms'")

    def hold_them() -> None:
        with held_row.only_tables(session, FROM):
            pass

    stores = postgresql().waiting_messages
    for look in (
        lambda: held_row.hold(session, seen),
        hold_them,
        lambda: stores.hold(session, FROM, seen.row_id, seen.seq),
        lambda: foreign_code.would_run(session, FROM, foreign_code.INSERT),
    ):
        with session.transaction():
            look()
            with pytest.raises(TimedOut):
                other.run('create trigger spies before delete on "From" for each row execute function public.spy()')
