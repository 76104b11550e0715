"""Error queues of another database on another server are emptied into the archive: each message once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django import Settings

from pgqueue_admin.archive import crossing_in
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import Process, Queue
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.models.queue_database import database_of, of_alias
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.operations import crossings, reconcile, single
from pgqueue_admin.services.queues import save_settings
from pgqueue_admin.workers.processes.ingester_process import IngesterProcess
from pgqueue_admin.workers.supervisor.role import RoleKey, singletons
from tests.archived_messages import OPERATOR, person
from tests.billing import (
    KINDS,
    Billing,
    billing_of,
    billing_server,
    looked_at,
    on_postgresql,
    open_crossings,
    restarted_after_a_crash,
)
from tests.killed_crossing import run_and_kill

MANY = 300
Connect = Callable[[str], Connection]

TAKE_IN = """
from pgqueue_admin.dialects import Address
from pgqueue_admin.models.queue_database import of_alias
billing = of_alias("billing")
crossings.take_in(billing, Address(f"billing:{billing.schemas[0]}", "error"))
"""


@pytest.fixture(scope="module")
def server_there() -> Iterator[PostgreSQL]:
    with billing_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def billing(request: pytest.FixtureRequest, settings: Settings, archived_console: str) -> Iterator[Billing]:
    with billing_of(request, settings) as there:
        yield there


@pytest.fixture
def here(archived_console: str, connect: Connect) -> Connection:
    return connect(archived_console)


@pytest.fixture
def there(billing: Billing, here: Connection) -> Billing:
    """Recorded failures in the error queue of the other database, and a control message."""
    rows = here.all(
        "select gen_random_uuid() as id, headers, body from messages.message_archive"
        " where kind = 'transport' order by seq limit %(limit)s",
        {"limit": MANY},
    )
    error = billing.make("error")
    assert billing.dialect.crossings
    with billing.dialect.connect(billing.dsn) as session, session.transaction():
        for row in rows:
            headers = billing.failed_in(row.headers)
            billing.dialect.crossings.put(session, error, row.id, headers, bytes(row.body or b""))
    return billing


def error_queue(there: Billing) -> Address:
    return there.orders._replace(table="error")


def archived_from_there(here: Connection, there: Billing) -> tuple[int, int]:
    row = here.one(
        "select count(*) as all, count(distinct row_id) as different from messages.message_archive"
        " where ingested_from = %(found)s",
        {"found": found(there)},
    )
    assert row is not None
    return row.all, row.different


def found(there: Billing) -> str:
    return f'"{there.orders.schema}"."error"'


def emptied(there: Billing) -> None:
    database = database_of(error_queue(there))
    reconcile.settle()
    while crossings.take_in(database, error_queue(there)).full:
        pass


def is_whole(here: Connection, there: Billing) -> None:
    assert there.rows("error") == []
    assert archived_from_there(here, there) == (MANY, MANY)
    assert open_crossings(here) == 0
    assert here.value("select count(*) from messages.crossing_copy") == 0


def test_a_dead_message_there_is_archived_with_where_it_failed(here: Connection, there: Billing) -> None:
    first = there.rows("error")[0]
    emptied(there)
    is_whole(here, there)
    row = here.one("select * from messages.message_archive where row_id = %(id)s::uuid", {"id": first.id})
    assert row is not None
    assert (row.headers, bytes(row.body), row.ingested_from) == (first.headers, bytes(first.body), found(there))
    assert row.target_schema == there.orders.schema
    assert row.queue == f'"{row.target_schema}"."{row.target_table}"'
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
    here: Connection, there: Billing, archived_console: str, where: str, left: int, archived: int
) -> None:
    run_and_kill("", archived_console, there, where, TAKE_IN)
    assert (len(there.rows("error")), archived_from_there(here, there)) == (left, (archived, archived))
    emptied(there)
    is_whole(here, there)


@on_postgresql
@pytest.mark.chaos
def test_a_server_that_crashes_at_the_commit(here: Connection, there: Billing, monkeypatch: pytest.MonkeyPatch) -> None:
    from pgqueue_admin.archive import crossings as rows

    leave = rows.leave

    def left(*about: object) -> None:
        leave(*about)  # type: ignore[arg-type]
        monkeypatch.setattr(rows, "leave", leave)
        restarted_after_a_crash(there.server)

    monkeypatch.setattr(rows, "leave", left)
    ingesting = IngesterProcess(of_alias("billing"))
    Queue.objects.create(schema=there.orders.schema, table="error", kind="error", ingest=True)
    for _ in range(4):
        while ingesting.run_once():
            pass
    is_whole(here, there)


def test_ingestion_commits_synchronously_before_the_source_forgets(
    here: Connection, there: Billing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a mark that is gone, SQL Server reports that nothing was committed: the copies would then be dropped."""
    finish, said = crossing_in.finish, list[str]()

    def finished(connection: Connection, *about: Any) -> list[int]:
        said.append(connection.value("select current_setting('synchronous_commit')"))
        return finish(connection, *about)

    monkeypatch.setattr(crossing_in, "finish", finished)
    with queue_databases.queue_database().write_session() as connection:
        assert connection.value("select current_setting('synchronous_commit')") == "off"
    emptied(there)
    assert set(said) == {"on"}
    is_whole(here, there)


def test_only_what_is_switched_on_is_emptied(here: Connection, there: Billing, settings: Settings) -> None:
    queue = Queue.objects.create(schema=there.orders.schema, table="error", kind="error")
    ingesting = IngesterProcess(of_alias("billing"))
    ingesting.run_once()
    assert len(there.rows("error")) == MANY
    save_settings(queue, {"ingest": True}, "ana", "console")
    IngesterProcess().run_once()
    assert len(there.rows("error")) == MANY, "the first database's is not for it"
    while ingesting.run_once():
        pass
    is_whole(here, there)
    (row,) = Process.objects.filter(role="source-ingester")
    assert (row.endpoint, row.label, row.last_error) == ("billing", "ingester of billing", "")
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there.looked_at(writable=False)}
    queue.refresh_from_db()
    save_settings(queue, {"ingest": False}, "ana", "console")
    with pytest.raises(ActRefused, match="are only looked at"):
        save_settings(queue, {"ingest": True}, "ana", "console")


@on_postgresql
def test_nothing_is_taken_out_where_that_would_run_code_of_others(here: Connection, there: Billing) -> None:
    there.run("""
        do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
        create or replace function public.spy() returns trigger language plpgsql as $$ begin return old; end $$;
        alter function public.spy() owner to neighbour;
        create trigger spies before delete on public.error for each row execute function public.spy()
    """)
    try:
        with pytest.raises(DatabaseError, match="trigger spies of role neighbour"):
            emptied(there)
        assert (len(there.rows("error")), open_crossings(here)) == (MANY, 0)
    finally:
        there.run("drop trigger spies on public.error")
    emptied(there)
    is_whole(here, there)


def test_each_that_is_written_to_has_a_process_of_its_own(settings: Settings) -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(nobody)}
    commands = {role.key: role.command for role in singletons() if role.key.kind == "source-ingester"}
    assert commands == {RoleKey("source-ingester", "billing"): ("ingester", "--database", "billing")}
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(nobody, writable=False)}
    assert not [role for role in singletons() if role.key.kind == "source-ingester"]


def test_message_retried_there_and_dead_again_is_marked_dead_again(here: Connection, there: Billing) -> None:
    """From there into the archive, back, and dead again: both rows show it."""
    ana = person("ana", *OPERATOR)
    emptied(there)
    row = here.one(
        "select id, headers, target_table from messages.message_archive where ingested_from = %(found)s"
        " and retry_blocked_reason is null and body is not null order by id limit 1",
        {"found": found(there)},
    )
    assert row is not None
    there.make(row.target_table)
    assert single.act("retry", row.id, ana, "console").result == "done"
    store, failed_in = there.dialect.crossings, there.dialect.address(there.schema, row.target_table)
    assert store
    with there.dialect.connect(there.dsn) as session, session.transaction():
        rows = [*store.take(session, failed_in, 10, 10_000)]
        body = store.body(session, failed_in, rows[0]) or b""
        assert store.remove(session, failed_in, rows) == 1
        store.put(session, there.dialect.address(there.schema, "error"), rows[0].id, row.headers, body)
    emptied(there)
    assert here.value("select state from messages.message_archive where id = %(id)s", {"id": row.id}) == "dead_again"
