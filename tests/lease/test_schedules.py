"""L9: due messages are sent once, however many processes run; missed ones are skipped or sent once."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.query import literal
from pgqueue_admin.dialects.schedule_store import DueTime, Missed
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import content, cron_timetable, due_times, runner
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.older_schema import set_back
from tests.waiting import until

Connect = Callable[..., Connection]
STORE = postgresql().schedules
BILLING = Address("public", "Billing")


def add(
    session: Connection, name: str = "Nightly", expression: str = "30 2 * * *", missed: Missed = "skip", **about: Any
) -> int:
    found = cron_timetable.read(expression, about.get("zone", "Europe/Vienna"))
    text = about.get("message", '{"kind": "sweep", "day": "{{ due | date }}", "at": "{{due}}"}')
    if to := about.get("to"):
        message = content.transport_message(session, postgresql(), to, about.get("type", "Shop.InvoiceRun"), text)
    else:
        message = content.lease_message(session, text)
    return STORE.add(session, name, message, due_times.plan(found, missed, STORE.now(session)), "ana")


def due(session: Connection, schedule: int, *ago: timedelta) -> None:
    """Make it due so long ago, and at no earlier time."""
    session.run("delete from messages.schedule_run where schedule = %(id)s and outcome is null", {"id": schedule})
    session.run(  # in one statement: two could differ by a second and merge two times
        "insert into messages.schedule_run (schedule, due_at, local_due)"
        " select %(id)s, date_trunc('second', now() - ago), (now() - ago) at time zone 'Europe/Vienna'"
        " from unnest(%(ago)s::interval[]) ago",
        {"id": schedule, "ago": list(ago)},
    )


def outcomes(session: Connection) -> list[Any]:
    return [
        row.outcome
        for row in session.all(
            "select outcome from messages.schedule_run where due_at <= now() order by schedule, due_at desc"
        )
    ]


def waiting(session: Connection) -> int:
    return int(session.value("select count(*) from messages.message"))


SECONDS, HOUR = timedelta(seconds=20), timedelta(hours=1)


def test_its_due_times_of_31_days_are_written_down(engine: Connection) -> None:
    schedule = add(engine)
    rows = engine.all("select due_at, local_due from messages.schedule_run order by due_at")
    assert len(rows) == 31
    assert {f"{row.local_due:%H:%M}" for row in rows} == {"02:30"}
    assert STORE.coming(engine, schedule, 2) == [tuple(row) for row in rows[:2]]


def test_a_lease_message_is_inserted_and_said_to_whoever_listens(engine: Connection, queue: LeaseQueue) -> None:
    schedule = add(engine)
    due(engine, schedule, SECONDS)
    engine.listen("new_message")
    planned = engine.one("select due_at, local_due from messages.schedule_run")
    assert planned is not None
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 0)
    (lease,) = queue.claim(5)
    at, local = planned.due_at.astimezone(UTC), planned.local_due
    assert lease.message == {"kind": "sweep", "day": f"{local:%Y-%m-%d}", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    assert [each.payload for each in engine.notifications(5)][:1] == [str(lease.id)]
    (row,) = STORE.listed(engine)
    assert (row.ran_as, row.ran_by, row.message_id, row.waits, row.ended_as) == (
        "sent",
        "a test",
        str(lease.id),
        True,
        None,
    )
    queue.finish(lease, "failed", "too bad")
    (row,) = STORE.listed(engine)
    assert (row.waits, row.ended_as, row.result) == (False, "dead", "failed")


def test_a_transport_message_is_what_an_endpoint_would_have_sent(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """Same headers in the same order; a receiver of ours handles it and is woken."""
    got: list[Any] = []
    handlers = Handlers()

    @handlers.handle("Shop.InvoiceRun")
    def bill(message: Any, context: Any) -> None:
        got.append((context.message_id, message))

    endpoint = Endpoint("Billing", engine_database, handlers=handlers)
    endpoint.create_queues()
    sender = Endpoint(content.SENDER, engine_database, send_only=True)
    sender.send("Billing", {"Day": "2026-11-27"}, type="Shop.InvoiceRun")
    sender.stop()
    theirs = h.parse(engine.value('select headers from "Billing"'))
    engine.run('delete from "Billing"')
    schedule = add(engine, to=BILLING, message='{"Day": "{{ due | date }}"}')
    due(engine, schedule, SECONDS)
    assert runner.run(engine, postgresql(), "a test").sent == 1
    row = engine.one('select id::text, expires, headers, body from "Billing"')
    assert row is not None
    ours = h.parse(row.headers)
    own = {h.MESSAGE_ID, h.CORRELATION_ID, h.CONVERSATION_ID, h.TIME_SENT}
    assert list(ours) == list(theirs)
    assert {name for name in ours if ours[name] != theirs[name]} == own
    assert ours[h.MESSAGE_ID] == ours[h.CORRELATION_ID] != ours[h.CONVERSATION_ID]
    assert abs(parse_time(ours[h.TIME_SENT]) - STORE.now(engine)) < timedelta(minutes=1)  # type: ignore[operator]
    assert (row.expires, list(orjson.loads(row.body))) == (None, ["Day"])
    (listed,) = STORE.listed(engine)
    assert (listed.message_id, str(listed.row_id)) == (ours[h.MESSAGE_ID], row.id)
    endpoint.start()
    try:
        until(lambda: len(got) == 1)
    finally:
        endpoint.stop()
    assert got[0][0] == ours[h.MESSAGE_ID]


@pytest.mark.parametrize(
    ("missed", "expected", "sent"),
    [("skip", ["skipped"] * 3, 0), ("catch_up", ["caught_up", "skipped", "skipped"], 1)],
)
def test_missed_due_times_are_skipped_or_caught_up_by_setting(
    engine: Connection, missed: Missed, expected: list[str], sent: int
) -> None:
    schedule = add(engine, missed=missed)
    due(engine, schedule, HOUR, 2 * HOUR, 3 * HOUR)
    assert runner.run(engine, postgresql(), "a test") == (sent, 3 - sent, 0)
    assert (outcomes(engine), waiting(engine)) == (expected, sent)
    (row,) = STORE.listed(engine)
    assert row.missed_count == 3 - sent


@pytest.mark.parametrize("missed", ["skip", "catch_up"])
def test_due_schedule_is_sent_after_missed_times(engine: Connection, missed: Missed) -> None:
    schedule = add(engine, missed=missed)
    due(engine, schedule, SECONDS, 2 * SECONDS, HOUR)
    assert runner.run(engine, postgresql(), "a test") == (2, 1, 0)
    assert outcomes(engine) == ["sent", "sent", "skipped"]


def test_while_it_is_paused_nothing_is_sent_nor_afterwards(engine: Connection) -> None:
    schedule = add(engine, missed="catch_up")
    due(engine, schedule, HOUR, 2 * HOUR)
    assert STORE.pause(engine, schedule, "ivo")
    assert not STORE.pause(engine, schedule, "ana")
    assert runner.run(engine, postgresql(), "a test") == (0, 2, 0)
    due(engine, schedule, SECONDS)
    STORE.resume(engine, schedule)
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 0)
    assert (outcomes(engine), waiting(engine)) == (["paused"] * 3, 0)


def test_however_many_run_at_once_each_due_time_is_sent_once(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """Twelve sessions, thirty schedules with three due times each, forty rounds."""
    Endpoint("Billing", engine_database).create_queues()
    for number in range(30):
        due(engine, add(engine, f"no. {number}", to=BILLING if number % 2 else None), SECONDS, 2 * SECONDS, 3 * SECONDS)
    sessions = [connect(engine_database) for _ in range(12)]

    def often(session: Connection) -> int:
        return sum(runner.run(session, postgresql(), "a test").sent for _ in range(40))

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(often, sessions)) == 90
    assert set(outcomes(engine)) == {"sent"}
    assert (waiting(engine), engine.value('select count(*) from "Billing"')) == (45, 45)


KILLED = """
import sys
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease.schedules import runner
runner.run(postgresql().connect(sys.argv[1], application_name="killed"), postgresql(), "killed")
"""


def test_killed_run_sends_nothing_and_the_next_run_sends(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """A trigger stops it after its first insert, at an advisory lock of the test."""
    for number in range(3):
        due(engine, add(engine, f"no. {number}"), SECONDS)
    engine.run(
        "create function public.wait() returns trigger language plpgsql as $$ begin"
        " perform pg_advisory_xact_lock_shared(77); return new; end $$;"
        "create trigger wait after insert on messages.message for each row execute function public.wait()"
    )
    blocker = connect(engine_database)
    blocker.run("select pg_advisory_lock(77)")
    process = subprocess.Popen([sys.executable, "-c", KILLED, engine_database])
    until(lambda: engine.value("select count(*) from pg_locks where locktype = 'advisory' and not granted") == 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert runner.run(engine, postgresql(), "beside it").sent == 0  # the killed session still locks its schedules
    engine.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'killed'")
    until(lambda: engine.value("select count(*) from pg_stat_activity where application_name = 'killed'") == 0)
    assert (waiting(engine), outcomes(engine)) == (0, [None] * 3)
    blocker.run("select pg_advisory_unlock(77)")
    assert runner.run(engine, postgresql(), "a test").sent == 3
    assert (waiting(engine), outcomes(engine)) == (3, ["sent"] * 3)


def test_unsendable_schedule_holds_up_no_other_and_is_retried(engine: Connection, engine_database: str) -> None:
    Endpoint("Billing", engine_database).create_queues()
    lost = add(engine, "lost", to=BILLING)
    due(engine, lost, SECONDS)
    due(engine, add(engine, "fine"), SECONDS)
    engine.run('alter table "Billing" rename to "Gone"')
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 1)
    (row,) = STORE.listed(engine, lost)
    assert ("Billing" in row.error, row.ran_as) == (True, None)
    engine.run('alter table "Gone" rename to "Billing"')
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)
    assert STORE.listed(engine, lost)[0].error is None


def test_a_queue_that_swallows_its_rows_is_no_success(engine: Connection, engine_database: str) -> None:
    Endpoint("Billing", engine_database).create_queues()
    due(engine, add(engine, to=BILLING), SECONDS)
    engine.run('create rule swallow as on insert to "Billing" do instead nothing')
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 1)
    assert "left the message out" in STORE.listed(engine)[0].error


def test_a_table_that_somebody_has_locked_is_not_waited_for_long(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    Endpoint("Billing", engine_database).create_queues()
    due(engine, add(engine, to=BILLING), SECONDS)
    other = connect(engine_database)
    with other.transaction():
        other.run('lock table "Billing"')
        assert runner.run(engine, postgresql(), "a test") == (0, 0, 1)
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)


NEIGHBOUR = """
do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
create function public.spy() returns trigger language plpgsql as $$ begin return new; end $$;
create function public.looks(text) returns boolean language sql immutable as $$ select true $$;
create domain public.watched as text check (public.looks(value));
create domain public.ours as text check (public.looks(value));
create type public.pair as (note public.watched);
alter function public.spy() owner to neighbour;
alter function public.looks(text) owner to neighbour;
alter domain public.watched owner to neighbour
"""
# By object: how it is attached and detached. Rules and policies belong to the table's owner.
ATTACHED = {
    "trigger spies": (
        'create trigger spies after insert on "Billing" for each statement execute function public.spy()',
        'drop trigger spies on "Billing"',
    ),
    "default of column seen": (
        'alter table "Billing" add column seen boolean default public.looks(current_user)',
        'alter table "Billing" drop column seen',
    ),
    "default of column made": (
        'alter table "Billing" add column made boolean generated always as (public.looks(headers)) stored',
        'alter table "Billing" drop column made',
    ),
    "check checked": (
        'alter table "Billing" add constraint checked check (public.looks(headers))',
        'alter table "Billing" drop constraint checked',
    ),
    "index hinted": ('create index hinted on "Billing" (public.looks(headers))', "drop index hinted"),
    "type of column note": (
        'alter table "Billing" add column note public.watched',
        'alter table "Billing" drop column note',
    ),
    "type of column own": ('alter table "Billing" add column own public.ours', 'alter table "Billing" drop column own'),
    "default of column twice": (
        """alter table "Billing" add column twice text default (row('x')::public.pair)::text""",
        'alter table "Billing" drop column twice',
    ),
    "rule also": (
        'alter table "Billing" owner to neighbour;'
        'create rule also as on insert to "Billing" do also select public.looks(new.headers)',
        'drop rule also on "Billing"; alter table "Billing" owner to current_user',
    ),
    "view Billing": (
        'alter table "Billing" rename to "There"; create view "Billing" as select * from "There";'
        'alter view "Billing" owner to neighbour; grant insert on "There" to neighbour',
        'drop view "Billing"; alter table "There" rename to "Billing"',
    ),
}


def test_nothing_is_sent_where_code_of_others_would_run(engine: Connection, engine_database: str) -> None:
    """Code is attached to the queue after the schedule was added. The schedule is retried and delays no other."""
    Endpoint("Billing", engine_database).create_queues()
    engine.run(NEIGHBOUR)
    billing, fine = add(engine, "billing", to=BILLING), add(engine, "fine")
    due(engine, billing, SECONDS)
    refused = {}
    for attach, detach in ATTACHED.values():
        due(engine, fine, SECONDS)
        engine.run(attach.replace('"Billing"', 'public."Billing"'))
        assert runner.run(engine, postgresql(), "a test") == (1, 0, 1), attach
        refused[attach] = STORE.listed(engine, billing)[0].error
        engine.run("delete from messages.schedule_run where outcome is not null; " + detach)
    said = "Code of others would run with the rights of this console: {} of role neighbour."
    assert list(refused.values()) == [
        said.format(what.replace("Billing", '"Billing"')) for what in ATTACHED
    ]  # and nothing else
    assert [row.id for row in STORE.unsent(engine, timedelta(minutes=3))] == [billing], "it is warned of"
    assert engine.value('select count(*) from public."Billing"') == 0
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)
    assert STORE.listed(engine, billing)[0].error is None


def test_trigger_added_during_a_run_is_waited_for_and_seen(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """The run waits for the transaction that adds the trigger, then sees it."""
    Endpoint("Billing", engine_database).create_queues()
    engine.run(NEIGHBOUR)
    due(engine, add(engine, to=BILLING), SECONDS)
    other, look = connect(engine_database), connect(engine_database)
    waits = "select exists (select from pg_locks where not granted and relation = 'public.\"Billing\"'::regclass)"
    with ThreadPoolExecutor(1) as pool:
        with other.transaction():
            other.run(ATTACHED["trigger spies"][0])
            ran = pool.submit(runner.run, engine, postgresql(), "a test")
            until(lambda: look.value(waits), what="it waits for the table")
        assert ran.result(60) == (0, 0, 1)
    assert "trigger spies of role neighbour" in STORE.listed(engine)[0].error


def test_an_older_snapshot_sends_nothing(engine: Connection) -> None:
    """It would not see what was attached since. pg_cron begins with its database's default isolation."""
    due(engine, add(engine), SECONDS)
    engine.run("set default_transaction_isolation = 'repeatable read'")
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 1)
    engine.run("reset default_transaction_isolation")
    assert "only at read committed" in STORE.listed(engine)[0].error
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)


@pytest.mark.parametrize("before", [5, 11])
def test_a_version_before_that_asked_nobody_asks_once_it_is_upgraded(
    engine: Connection, engine_database: str, before: int
) -> None:
    Endpoint("Billing", engine_database).create_queues()
    engine.run(NEIGHBOUR)
    engine.run(ATTACHED["trigger spies"][0])
    set_back(engine, before)
    billing = add(engine, to=BILLING)
    due(engine, billing, SECONDS)
    assert runner.run(engine, postgresql(), "a test") == (1, 0, 0)
    schema.install(engine)
    engine.run("delete from messages.schedule_run")
    due(engine, billing, SECONDS)
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 1)


def test_more_due_times_are_planned_before_they_end_and_none_twice(engine: Connection) -> None:
    schedule = add(engine)
    engine.run(
        "delete from messages.schedule_run where due_at > now() + interval '10 days';"
        "update messages.schedule set planned_until = now() + interval '10 days'"
    )
    runner.run(engine, postgresql(), "a test")
    runner.run(engine, postgresql(), "a test")
    times = [each.at for each in STORE.coming(engine, schedule, 100)]
    assert len(times) == len(set(times)) == 31
    assert max(later - sooner for sooner, later in pairwise(times)) <= timedelta(hours=25)


def test_after_two_months_without_anybody_the_latest_is_caught_up(engine: Connection) -> None:
    add(engine, missed="catch_up")
    engine.run(
        "delete from messages.schedule_run; update messages.schedule set planned_until = now() - interval '60 days'"
    )
    assert runner.run(engine, postgresql(), "a test").sent == 1
    assert outcomes(engine)[0] == "caught_up"
    assert set(outcomes(engine)[1:]) == {"skipped"}


def test_old_runs_are_forgotten_but_the_latest_that_was_sent(engine: Connection) -> None:
    schedule = add(engine)
    for days, outcome in ((100, "sent"), (90, "sent"), (80, "skipped"), (40, "sent"), (35, "skipped")):
        engine.run(
            "insert into messages.schedule_run (schedule, due_at, local_due, outcome)"
            " values (%(id)s, now() - %(ago)s, now(), %(outcome)s)",
            {"id": schedule, "ago": timedelta(days=days), "outcome": outcome},
        )
    engine.run("update messages.schedule set planned_until = now()")
    runner.run(engine, postgresql(), "a test")
    assert outcomes(engine) == ["skipped", "sent"]


def test_a_plan_that_cannot_be_read_any_more_says_so(engine: Connection) -> None:
    add(engine)
    engine.run("update messages.schedule set zone = 'Europe/Atlantis', planned_until = now()")
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 0)
    assert "Europe/Atlantis is no time zone" in STORE.listed(engine)[0].error


def test_a_change_keeps_what_was_due_and_plans_the_rest_anew(engine: Connection) -> None:
    schedule = add(engine)
    due(engine, schedule, SECONDS)
    found = cron_timetable.read("0 6 1 * *", "UTC")
    with engine.transaction():
        STORE.hold(engine, schedule)
        message = content.lease_message(engine, '"new"')
        STORE.change(engine, schedule, "Monthly", message, due_times.plan(found, "skip", STORE.now(engine)))
    assert runner.run(engine, postgresql(), "a test").sent == 1
    assert engine.value("select message from messages.message") == "new"
    assert {(each.local.day, each.local.hour) for each in STORE.coming(engine, schedule, 50)} == {(1, 6)}


def test_run_by_hand_is_one_more_and_leaves_the_plan(engine: Connection) -> None:
    schedule = add(engine)
    before = STORE.coming(engine, schedule, 50)
    now = STORE.now(engine)
    sent = STORE.run_by_hand(engine, schedule, DueTime(now, now.replace(tzinfo=None)), "ana")
    (row,) = STORE.past(engine, schedule)
    assert (row.outcome, row.who, row.message_id, row.waits) == ("by_hand", "ana", sent, True)
    assert STORE.coming(engine, schedule, 50) == before
    assert STORE.run_by_hand(engine, schedule + 1, DueTime(now, now.replace(tzinfo=None)), "ana") is None


def test_removed_it_is_gone_and_its_messages_stay(engine: Connection) -> None:
    schedule = add(engine)
    due(engine, schedule, SECONDS)
    runner.run(engine, postgresql(), "a test")
    assert STORE.remove(engine, schedule)
    assert not STORE.remove(engine, schedule)
    assert (outcomes(engine), waiting(engine)) == ([], 1)


def test_a_name_is_there_once(engine: Connection) -> None:
    add(engine)
    with pytest.raises(AlreadyExists):
        add(engine)


@pytest.mark.parametrize(
    ("about", "field", "said"),
    [
        ({"message": '{"a": }'}, "message", "no JSON: Expecting value, in line 1, column 7"),
        ({"message": '"{{ due | hour }}"'}, "message", "not known"),
        ({"message": '"\\u0000"'}, "message", "NUL"),
        ({"message": "[" * 100_000}, "message", "cannot be read"),
        ({"to": BILLING, "message": "1"}, "to", '"Billing" does not exist'),
        ({"to": Address("messages", "schedule"), "message": "1"}, "to", "has no column expires"),
    ],
)
def test_unsendable_schedule_is_refused_before_it_is_saved(
    engine: Connection, about: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(ScheduleRefused, match=said) as refused:
        add(engine, **about)
    assert refused.value.field == field
    assert STORE.listed(engine) == []


def test_schedule_run_by_a_role_without_insert_sends_nothing(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """It runs with its caller's rights, not with those of the tables' owner."""
    Endpoint("Billing", engine_database).create_queues()
    billing = add(engine, to=BILLING)
    due(engine, billing, SECONDS)
    engine.run(
        "drop role if exists schedule_runner; create role schedule_runner;"
        "grant usage on schema messages, public to schedule_runner;"
        "grant select, insert, update, delete on all tables in schema messages to schedule_runner;"
        "grant usage on all sequences in schema messages to schedule_runner"
    )
    due(engine, add(engine, "lease"), SECONDS)
    runner_session = connect(engine_database)
    runner_session.run("set role schedule_runner")
    assert runner.run(runner_session, postgresql(), "a test") == (1, 0, 1), "the owner of the engine is trusted"
    assert "permission denied" in STORE.listed(engine, billing)[0].error
    engine.run(
        'grant insert on "Billing" to schedule_runner; grant usage on all sequences in schema public to schedule_runner'
    )
    assert runner.run(runner_session, postgresql(), "a test") == (1, 0, 0)
    engine.run("drop owned by schedule_runner; drop role schedule_runner")


@pytest.mark.parametrize("before", [2, 3, 4])
def test_tables_of_a_version_before_get_schedules(engine: Connection, before: int) -> None:
    set_back(engine, before)
    assert runner.run(engine, postgresql(), "a test") == (0, 0, 0)
    assert runner.due_in(engine, postgresql()) is None
    schema.install(engine)
    due(engine, add(engine), SECONDS)
    assert runner.run(engine, postgresql(), "a test").sent == 1


def test_last_runner_is_recorded_without_waiting(engine: Connection, engine_database: str, connect: Connect) -> None:
    runner.run(engine, postgresql(), "beat on app-1")
    looked = STORE.looked(engine)
    assert (looked.who, looked.first_open) == ("beat on app-1", None)
    other = connect(engine_database)
    with other.transaction():
        other.run("select from messages.schedule_look for update")
        runner.run(engine, postgresql(), "pg_cron")
    assert STORE.looked(engine).who == "beat on app-1"


def test_when_the_next_is_due(engine: Connection) -> None:
    assert runner.due_in(engine, postgresql()) is None
    due(engine, add(engine), -HOUR)
    assert 3590 < (runner.due_in(engine, postgresql()) or 0) <= 3600


def test_a_hostile_operator_of_the_path_is_not_called(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """pg_cron runs it in a session with its role's search path."""
    due(engine, add(engine), SECONDS)
    caller = connect(engine_database)
    caller.run("create schema hostile; set search_path = hostile, pg_catalog")
    caller.run(
        "create function hostile.le(timestamptz, timestamptz) returns boolean language plpgsql as"
        " $$ begin raise exception 'mine'; end $$;"
        "create operator hostile.<= (leftarg = timestamptz, rightarg = timestamptz, function = hostile.le)"
    )
    assert caller.value("select ran from messages.run_schedules(10, interval '5 minutes', 'x')") == 1
    with pytest.raises(DatabaseError, match="mine"):
        caller.value("select now() <= now()")


def test_a_day_is_the_zones_own(engine: Connection, queue: LeaseQueue) -> None:
    schedule = add(engine, expression="30 0 * * *", message='"{{ due | date }}"')
    found = cron_timetable.next_times(
        cron_timetable.read("30 0 * * *", "Europe/Vienna"), datetime(2026, 7, 1, 12, tzinfo=UTC), 1
    )
    engine.run("delete from messages.schedule_run")
    assert STORE.run_by_hand(engine, schedule, found[0], "ana")
    assert [each.message for each in queue.claim(1)] == ["2026-07-02"]


def test_statements_read_little_with_many_past_runs_and_messages(engine: Connection) -> None:
    """Twenty schedules of every minute with two weeks of runs, on a lease queue of 20,000."""
    for number in range(20):
        add(engine, f"no. {number}", "* * * * *")
    engine.run(
        "insert into messages.schedule_run (schedule, due_at, local_due, outcome, message_id)"
        " select s.id, now() - i * interval '1 minute', now(), 'sent', i::text"
        " from messages.schedule s, generate_series(1, 20000) i;"
        "delete from messages.schedule_run where outcome is null and due_at < now() + interval '1 hour';"
        "insert into messages.schedule_run (schedule, due_at, local_due)"
        " select s.id, now() - interval '5 seconds', now() from messages.schedule s;"  # whatever time the inserts took
        "insert into messages.message (message) select '1' from generate_series(1, 20000);"
        "analyze messages.schedule, messages.schedule_run, messages.message"
    )
    sql = postgresql().schedule
    asked: list[tuple[Any, dict[str, Any]]] = [
        (sql.listed(columns=sql.columns), {"id": None}),
        (sql.run(most=500), {"grace": 300.0, "who": "x"}),
        (sql.due_in(), {}),
    ]
    for query, params in asked:
        plan = "\n".join(row[0] for row in engine.all(f"explain (analyze, buffers) {literal(engine, query, params)}"))
        read = sum(map(int, re.findall(r"^  Buffers: shared hit=(\d+)", plan, re.MULTILINE)))
        assert read < 10_000, plan  # foreign code is checked for each message sent
        assert "Seq Scan on message" not in plan
