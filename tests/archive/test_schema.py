"""The engine's tables: installed once, complete, beside the original's, never over foreign tables (L2, A1, A2)."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.archive.errors import SchemaAdoptable, SchemaForeign, SchemaNewer
from pgqueue_admin.dialects import Connection
from tests.older_schema import set_back

Connect = Callable[..., Connection]

ORIGINAL = """
create schema messages;
create table messages.message (id serial primary key, created_at timestamp not null default current_timestamp,
    message jsonb not null, lock_expires_at timestamp default null);
create index idx_lock_expires_at on messages.message (lock_expires_at);
create type message_status as enum ('success', 'failed', 'rejected', 'lock_expired');
create table messages.message_archive (id serial primary key, created_at timestamp not null,
    archived_at timestamp not null default current_timestamp, message jsonb not null, result message_status not null,
    handled_by varchar(50) not null, details text default null);
insert into messages.message_archive (created_at, archived_at, message, result, handled_by)
values ('2024-08-04 10:00', '2024-08-04 10:01', '["fail"]', 'failed', 'worker'),
       ('2024-08-04 11:00', '2024-08-04 11:01', '["ok"]', 'success', 'worker')
"""
COLUMNS = """
select attname::text || ' ' || format_type(atttypid, atttypmod) from pg_attribute
where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped order by attnum
"""


def columns(connection: Connection, table: str) -> list[str]:
    return [row[0] for row in connection.all(COLUMNS, {"table": table})]


def test_installs_once_and_says_so(connection: Connection) -> None:
    assert schema.version(connection) is None
    assert schema.install(connection) == (schema.VERSION, "installed")
    assert schema.install(connection) == (schema.VERSION, "nothing")
    assert schema.version(connection) == schema.VERSION


def test_the_original_part_is_the_originals(engine: Connection) -> None:
    assert columns(engine, "messages.message_archive")[:7] == [
        "id integer",
        "created_at timestamp without time zone",
        "archived_at timestamp without time zone",
        "message jsonb",
        "result message_status",
        "handled_by character varying(50)",
        "details text",
    ]
    triggers = engine.all("select tgname from pg_trigger where not tgisinternal order by 1")
    theirs = ["dead_message_trigger", "new_message_trigger"]
    assert {row[0] for row in triggers} == {
        *theirs, "archive_event_append_only", "failure_changed", "failure_deleted", "failure_died",
        "failure_truncated", "lease_deliver_dead", "lease_keep_for_rules", "lease_mark_ending",
        "lease_note_deleted", "lease_note_retried",
    }  # fmt: skip
    assert columns(engine, "messages.message")[:4] == [
        "id integer",
        "created_at timestamp without time zone",
        "message jsonb",
        "lock_expires_at timestamp without time zone",
    ]


def test_two_runs_at_once_make_one_schema(database: str, connect: Connect) -> None:
    sessions = [connect(database) for _ in range(4)]
    results: list[Any] = []
    threads = [threading.Thread(target=lambda s=s: results.append(schema.install(s))) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(did for _, did in results) == ["installed", "nothing", "nothing", "nothing"]


def test_a_newer_schema_is_refused(engine: Connection) -> None:
    engine.run("update messages.engine_schema set version = version + 1")
    with pytest.raises(SchemaNewer, match=f"of version {schema.VERSION + 1}, this program knows {schema.VERSION}"):
        schema.install(engine)


@pytest.mark.parametrize(
    "foreign",
    [
        "create schema messages; create table messages.message_archive (id int, subject text)",
        "create schema messages; create table messages.message (id uuid)",
        "create type public.message_status as enum ('new', 'old')",
        "create domain public.message_status as text",
    ],
)
def test_foreign_tables_are_refused_and_left_unchanged(connection: Connection, foreign: str) -> None:
    connection.run(foreign)
    with pytest.raises(SchemaForeign, match="Nothing was changed"):
        schema.install(connection)
    assert schema.version(connection) is None


def test_a_schema_of_that_name_without_such_tables_is_shared(connection: Connection) -> None:
    connection.run("create schema messages; create table messages.inbox (id int)")
    assert schema.install(connection).did == "installed"


def test_the_original_is_adopted_only_when_asked(connection: Connection) -> None:
    connection.run(ORIGINAL)
    with pytest.raises(SchemaAdoptable, match=r"rewrites messages.message_archive \(0.\d MB\) under an exclusive lock"):
        schema.install(connection)
    warned: list[str] = []
    assert schema.install(connection, adopt=True, warn=warned.append) == (schema.VERSION, "adopted")
    assert "nothing is archived until it is done" in warned[0]
    rows = connection.all("select id, seq, kind, state, died_at::text from messages.message_archive order by id")
    assert rows == [
        (1, 1, "lease", "dead", "2024-08-04 10:01:00+00"),
        (2, 2, "lease", "succeeded", "2024-08-04 11:01:00+00"),
    ]


def test_adopted_rows_keep_their_numbers_and_new_ones_are_past_all(connection: Connection) -> None:
    """History may have read them by these numbers. The newest row was deleted, so its number is unused."""
    connection.run(ORIGINAL)
    connection.run("update messages.message_archive set id = 7 - id")
    connection.run("select setval('messages.message_archive_id_seq', 9)")
    schema.install(connection, adopt=True)
    assert connection.all("select id, seq from messages.message_archive order by id") == [(5, 5), (6, 6)]
    connection.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        """ values (now(), '["x"]', 'success', 'worker')"""
    )
    assert connection.one("select id, seq from messages.message_archive where id > 6") == (10, 10)
    with pytest.raises(Exception, match="GENERATED ALWAYS"):
        connection.run(
            "insert into messages.message_archive (created_at, message, result, handled_by, seq)"
            """ values (now(), '["x"]', 'success', 'worker', 1)"""
        )


def test_an_original_client_goes_on_writing_what_it_wrote(engine: Connection) -> None:
    """A4: the original client's two inserts name none of our columns."""
    engine.run("""insert into messages.message (message) values ('["x"]')""")
    engine.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, details)"
        """ values (now(), '["x"]', 'lock_expired', 'worker', null)"""
    )
    assert engine.one("select kind, state, queue from messages.message_archive") == ("lease", "dead", None)
    assert engine.value("select count(*) from messages.message_dead") == 1


def test_events_are_append_only(engine: Connection) -> None:
    engine.run("insert into messages.archive_event (archive_id, who, verb) values (1, 'ana', 'retried')")
    for change in ("update messages.archive_event set who = 'bob'", "delete from messages.archive_event"):
        with pytest.raises(Exception, match="append-only"):
            engine.run(change)


def test_without_the_right_it_says_so(engine_database: str, connect: Connect) -> None:
    from pgqueue_admin.dialects.errors import NotPermitted

    owner = connect(engine_database)
    owner.run("drop schema messages cascade; drop type public.message_status cascade")
    owner.run("drop role if exists reader_only; create role reader_only")
    reader = connect(engine_database)
    reader.run("set role reader_only")
    with pytest.raises(NotPermitted):
        schema.install(reader)


FUNCTIONS = [
    *(
        (f"messages.{name}()", ["search_path=pg_catalog, pg_temp"])
        for name in (
            *("count_failure", "count_changed_failures", "count_deleted_failures", "count_no_failures"),
            "recount_failures",
        )
    ),
    ("messages.deliver_dead()", ["search_path=pg_catalog, pg_temp"]),
    ("messages.keep_for_rules()", ["search_path=pg_catalog, pg_temp"]),
    ("messages.mark_ending()", ["search_path=pg_catalog, pg_temp"]),
    ("messages.note_deleted()", ["search_path=pg_catalog, pg_temp"]),
    ("messages.note_retried()", ["search_path=pg_catalog, pg_temp"]),
    ("messages.one_line(text)", ["search_path=pg_catalog, pg_temp"]),
    ("messages.one_word(text)", ["search_path=pg_catalog, pg_temp"]),
    ("messages.refuse_change()", ["search_path=pg_catalog, pg_temp"]),
    (
        "messages.run_schedules(integer,interval,text)",
        ["search_path=pg_catalog, pg_temp", "lock_timeout=3s"],
    ),
    (
        "messages.send_scheduled(messages.schedule,timestamp with time zone,timestamp without time zone)",
        ["search_path=pg_catalog, pg_temp"],
    ),
    ("dead_message_nofify()", ["search_path=pg_catalog, pg_temp"]),
    ("new_message_nofify()", ["search_path=pg_catalog, pg_temp"]),
]
PINNED = """
select p.oid::regprocedure::text as function, p.proconfig from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('public', 'messages')
"""


@pytest.mark.parametrize("before", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
def test_functions_have_their_own_search_path_after_any_upgrade(engine: Connection, before: int) -> None:
    if before < schema.VERSION:
        set_back(engine, before)
        assert schema.install(engine) == (schema.VERSION, "updated")
    assert sorted(engine.all(PINNED)) == sorted(FUNCTIONS)
    assert schema.install(engine) == (schema.VERSION, "nothing")


@pytest.mark.parametrize("before", [1, 2, 3, 4, 5, 6, 7])
def test_an_upgrade_keeps_the_rows_and_ends_where_an_installation_does(
    engine: Connection, database: str, connect: Connect, before: int
) -> None:
    """With waiting, locked and dead messages."""
    set_back(engine, before)
    engine.run("""insert into messages.message (message) values ('["waits"]')""")
    engine.run(
        "insert into messages.message (message, lock_expires_at) values ('1', now() at time zone 'utc' + '1 hour')"
    )
    insert = "insert into messages.message_archive (created_at, message, result, handled_by) values"
    engine.run(f"""{insert} ('2024-08-04 10:00', '["fail"]', 'failed', 'worker')""")
    engine.run("insert into messages.operation_item values (7, 1, 1, null, 'done')")
    theirs = "select id, created_at, message, lock_expires_at from messages.message order by id"
    waiting = engine.all(theirs)
    schema.install(engine)
    assert engine.all(theirs) == waiting
    items = "select operation, position, archive_id, outcome from messages.operation_item"
    assert engine.all(items) == [(7, 1, 1, "done")]
    assert (
        engine.all("select attempts, lock_token, release_expired, available_at <= now() from messages.message")
        == [(0, None, False, True)] * 2
    )
    assert engine.one("select message, second_ending_of from messages.message_dead") == (["fail"], None)
    new = connect(database)
    schema.install(new)
    tables = (
        "message",
        "message_archive",
        "message_dead",
        "notify_round",
        "schedule",
        "schedule_run",
        "schedule_look",
        "dead_delivery",
        "operation_item",
    )
    for table in (f"messages.{name}" for name in tables):
        assert sorted(columns(engine, table)) == sorted(columns(new, table))
    of_others = engine.one("insert into messages.message (message) values ('2') returning *")
    assert of_others is not None


def told_of_a_death(engine: Connection, message_id: str | None) -> str:
    with engine.transaction():
        engine.run(
            "insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, message_id)"
            " values (now(), '1', 'failed', 'w', 'transport', 'q', %(id)s)",
            {"id": message_id},
        )
    return next(iter(engine.notifications(timeout=10))).payload


def test_the_notify_of_a_death_carries_the_id_that_was_chosen(engine: Connection) -> None:
    """The archive id by default; the choice survives a run without the option, and an upgrade."""
    newest = "select max(id)::text from messages.message_archive"
    engine.listen("dead_message")
    assert told_of_a_death(engine, "m-1") == engine.value(newest)
    assert schema.install(engine, dead_payload="message").did == "nothing"
    assert told_of_a_death(engine, "m-2") == "m-2"
    set_back(engine, 4)
    assert schema.install(engine).did == "updated"
    assert told_of_a_death(engine, "m-3") == "m-3"
    assert told_of_a_death(engine, "ü" * 9_000) == "ü" * 500, "an id of any length kills nothing twice"
    assert told_of_a_death(engine, None) == ""
    assert sorted(engine.all(PINNED)) == sorted(FUNCTIONS)
    schema.install(engine, dead_payload="archive")
    assert told_of_a_death(engine, "m-4") == engine.value(newest)


def test_role_granted_only_the_dead_view_reads_the_dead(engine: Connection) -> None:
    engine.run("drop role if exists sees_the_dead; create role sees_the_dead")
    engine.run(
        "grant usage on schema messages to sees_the_dead; grant select on messages.message_dead to sees_the_dead"
    )
    insert = "insert into messages.message_archive (created_at, message, result, handled_by) values"
    engine.run(f"{insert} (now(), '[1]', 'failed', 'worker'), (now(), '[2]', 'success', 'worker')")
    engine.run("set role sees_the_dead")
    assert engine.all("select message, result::text from messages.message_dead") == [([1], "failed")]
    engine.run("reset role; drop owned by sees_the_dead; drop role sees_the_dead")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_adopted_tables_have_their_times_in_utc_whoever_writes(connection: Connection, zone: str) -> None:
    connection.run(ORIGINAL)
    schema.install(connection, adopt=True)
    connection.run(f"set timezone = '{zone}'")
    connection.run("insert into messages.message (message) values ('1')")
    connection.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '1', 'success', '')"
    )
    behind = (
        "select abs(extract(epoch from (now() at time zone 'utc') - {})) < 60 from messages.{} order by id desc limit 1"
    )
    assert connection.value(behind.format("created_at", "message"))
    assert connection.value(behind.format("archived_at", "message_archive"))
