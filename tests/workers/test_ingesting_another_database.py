"""Error queues of another database, on another server, are emptied into the archive: each message once."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django import Settings

from pgqueue_admin.archive import crossing_in
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import Process, Queue
from pgqueue_admin.models import queue_database as source
from pgqueue_admin.models.queue_database import database_of, of_alias
from pgqueue_admin.services import operations
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.operations import crossings
from pgqueue_admin.services.queues import save_settings
from pgqueue_admin.workers.processes.ingester_process import IngesterProcess
from pgqueue_admin.workers.supervisor.role import RoleKey, singletons
from tests.archived_messages import OPERATOR, person
from tests.billing import billing_server, looked_at, open_crossings, restarted_after_a_crash
from tests.killed_process import run_killed

ERROR, THERE = Address("billing:public", "error"), Address("public", "error")
FOUND = '"billing:public"."error"'
MANY = 300
Connect = Callable[[str], Connection]

# The product's own code; only the moment of its death is chosen here.
KILLED = """
import os, signal, sys
import django
django.setup()
from pgqueue_admin.archive import crossing_in, crossings as rows
from pgqueue_admin.dialects import Address
from pgqueue_admin.models.queue_database import of_alias
from pgqueue_admin.services.operations import crossings

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(does):
    def both(*arguments):
        does(*arguments)
        die()
    return both

where = sys.argv[1]
if where == "before the copies":
    crossing_in._copied = die
elif where == "after the copies":
    crossing_in._copied = then_die(crossing_in._copied)
elif where == "before the mark":
    rows.leave = die
elif where == "before the commit there":
    rows.leave = then_die(rows.leave)
elif where == "after the commit there":
    crossings._finish = die
elif where == "within the end":
    crossing_in.finish = then_die(crossing_in.finish)
elif where == "after the end":
    crossings._forget = die
crossings.take_in(of_alias("billing"), Address("billing:public", "error"))
"""


@pytest.fixture(scope="module")
def server_there() -> Iterator[PostgreSQL]:
    with billing_server() as server:
        with postgresql().connect(server.dsn("billing")) as there:
            postgresql().queue_store(THERE).create(there)
        yield server


@pytest.fixture
def billing(server_there: PostgreSQL, settings: Settings, archived_console: str) -> Iterator[PostgreSQL]:
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(server_there.dsn("billing"))}
    yield server_there
    source.close()


@pytest.fixture
def here(archived_console: str, connect: Connect) -> Connection:
    return connect(archived_console)


@pytest.fixture
def there(billing: PostgreSQL, here: Connection) -> Iterator[Connection]:
    """Recorded failures lie in the error queue there, and a control message."""
    rows = here.all(
        "select gen_random_uuid() as id, headers, body from messages.message_archive"
        " where kind = 'transport' order by seq limit %(limit)s",
        {"limit": MANY},
    )
    with postgresql().connect(billing.dsn("billing")) as connection:
        connection.run("truncate public.error")
        for row in rows:
            postgresql().crossings.put(connection, THERE, row.id, row.headers, bytes(row.body or b""))
    with postgresql().connect(billing.dsn("billing")) as connection:
        yield connection


def number_there(there: Connection) -> int:
    return int(there.value("select count(*) from public.error"))


def archived_from_there(here: Connection) -> tuple[int, int]:
    row = here.one(
        "select count(*) as all, count(distinct row_id) as different from messages.message_archive"
        " where ingested_from = %(found)s",
        {"found": FOUND},
    )
    assert row is not None
    return row.all, row.different


def emptied() -> None:
    database = database_of(ERROR)
    operations.settle()
    while crossings.take_in(database, ERROR).full:
        pass


def is_whole(here: Connection, there: Connection) -> None:
    assert number_there(there) == 0
    assert archived_from_there(here) == (MANY, MANY)
    assert open_crossings(here) == 0
    assert here.value("select count(*) from messages.crossing_copy") == 0


def test_a_dead_message_there_is_archived_with_where_it_failed(
    billing: PostgreSQL, here: Connection, there: Connection
) -> None:
    first = there.one("select * from public.error order by seq limit 1")
    assert first is not None
    emptied()
    is_whole(here, there)
    row = here.one("select * from messages.message_archive where row_id = %(id)s", {"id": first.id})
    assert row is not None
    assert (row.headers, bytes(row.body), row.ingested_from) == (first.headers, bytes(first.body), FOUND)
    assert row.target_schema == "billing:public"
    assert row.queue == f'"billing:public"."{row.target_table}"'
    assert (row.state, row.kind) == ("dead", "transport")


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("where", "left", "archived"),
    [
        ("before the copies", 300, 0),
        ("after the copies", 300, 0),
        ("before the mark", 300, 0),
        ("before the commit there", 300, 0),
        ("after the commit there", 100, 0),
        ("within the end", 100, 0),
        ("after the end", 100, 200),
    ],
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    billing: PostgreSQL,
    here: Connection,
    there: Connection,
    archived_console: str,
    where: str,
    left: int,
    archived: int,
) -> None:
    environment = {
        "DATABASE_URL": archived_console, "QUEUES_URL": archived_console, "PGQUEUE_QUEUE_SCHEMAS": "public,Legacy",
        "QUEUES_URL_BILLING": billing.dsn("billing"), "PGQUEUE_WRITABLE_BILLING": "yes", "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings", "PGQUEUE_STATE_DIR": "/nonexistent/var",
    }  # fmt: skip
    run_killed(KILLED, (where,), environment, archived_console, billing.dsn("billing"))
    assert (number_there(there), archived_from_there(here)) == (left, (archived, archived))
    emptied()
    is_whole(here, there)


@pytest.mark.chaos
def test_a_server_that_crashes_at_the_commit(
    billing: PostgreSQL, here: Connection, there: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pgqueue_admin.archive import crossings as rows

    leave = rows.leave

    def left(*about: object) -> None:
        leave(*about)  # type: ignore[arg-type]
        monkeypatch.setattr(rows, "leave", leave)
        restarted_after_a_crash(billing)

    monkeypatch.setattr(rows, "leave", left)
    ingesting = IngesterProcess(of_alias("billing"))
    Queue.objects.create(schema=ERROR.schema, table=ERROR.table, kind="error", ingest=True)
    for _ in range(4):
        while ingesting.turn():
            pass
    with postgresql().connect(billing.dsn("billing")) as again:
        is_whole(here, again)


def test_what_may_be_forgotten_there_no_crash_undoes_here(
    billing: PostgreSQL, here: Connection, there: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL Server says of a mark that it has forgotten that nothing was committed: then the copies would be dropped."""
    finish, said = crossing_in.finish, list[str]()

    def finished(connection: Connection, *about: Any) -> list[int]:
        said.append(connection.value("select current_setting('synchronous_commit')"))
        return finish(connection, *about)

    monkeypatch.setattr(crossing_in, "finish", finished)
    with source.queue_database().writing() as connection:
        assert connection.value("select current_setting('synchronous_commit')") == "off"
    emptied()
    assert set(said) == {"on"}
    is_whole(here, there)


def test_only_what_is_switched_on_is_emptied(
    billing: PostgreSQL, here: Connection, there: Connection, settings: Settings
) -> None:
    queue = Queue.objects.create(schema=ERROR.schema, table=ERROR.table, kind="error")
    ingesting = IngesterProcess(of_alias("billing"))
    ingesting.turn()
    assert number_there(there) == MANY
    save_settings(queue, {"ingest": True}, "ana", "console")
    IngesterProcess().turn()
    assert number_there(there) == MANY, "the first database's is not for it"
    while ingesting.turn():
        pass
    is_whole(here, there)
    (row,) = Process.objects.filter(role="source-ingester")
    assert (row.endpoint, row.label, row.last_error) == ("billing", "ingester of billing", "")
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(billing.dsn("billing"), writable=False)}
    queue.refresh_from_db()
    save_settings(queue, {"ingest": False}, "ana", "console")
    with pytest.raises(ActRefused, match="are only looked at"):
        save_settings(queue, {"ingest": True}, "ana", "console")


def test_nothing_is_taken_out_where_that_would_run_code_of_others(here: Connection, there: Connection) -> None:
    there.run("""
        do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
        create or replace function public.spy() returns trigger language plpgsql as $$ begin return old; end $$;
        alter function public.spy() owner to neighbour;
        create trigger spies before delete on public.error for each row execute function public.spy()
    """)
    try:
        with pytest.raises(DatabaseError, match="trigger spies of role neighbour"):
            emptied()
        assert (number_there(there), open_crossings(here)) == (MANY, 0)
    finally:
        there.run("drop trigger spies on public.error")
    emptied()
    is_whole(here, there)


def test_each_that_is_written_to_has_a_process_of_its_own(settings: Settings) -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(nobody)}
    commands = {role.key: role.command for role in singletons() if role.key.kind == "source-ingester"}
    assert commands == {RoleKey("source-ingester", "billing"): ("ingester", "--database", "billing")}
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(nobody, writable=False)}
    assert not [role for role in singletons() if role.key.kind == "source-ingester"]


def test_what_was_retried_there_and_died_again_says_so(
    billing: PostgreSQL, here: Connection, there: Connection
) -> None:
    """From there into the archive, back, and dead once more: both rows tell it."""
    ana = person("ana", *OPERATOR)
    emptied()
    row = here.one(
        "select id, headers, target_table from messages.message_archive where ingested_from = %(found)s"
        " and retry_blocked_reason is null and body is not null order by id limit 1",
        {"found": FOUND},
    )
    assert row is not None
    postgresql().queue_store(Address("public", row.target_table)).create(there)
    assert operations.act("retry", row.id, ana, "console").result == "done"
    store = postgresql().crossings
    with there.transaction():
        queue = Address("public", row.target_table)
        rows = [each for each in store.take(there, queue, 10, 10_000)]
        body = store.body(there, queue, rows[0]) or b""
        assert store.remove(there, queue, rows) == 1
        store.put(there, THERE, rows[0].id, row.headers, body)
    emptied()
    assert here.value("select state from messages.message_archive where id = %(id)s", {"id": row.id}) == "dead_again"
