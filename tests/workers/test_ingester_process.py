"""Error queues are emptied into the archive if that is switched on, and only those (C4)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape

import environ
import pytest
from django.db import connections

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry, Process, Queue, queue_database
from pgqueue_admin.workers.processes.ingester_process import IngesterProcess
from tests.console.sampled import elsewhere, signed_in
from tests.databases import Databases
from tests.hostile import change_detector
from tests.waiting import until, within
from tests.workers.host import House, alive


@pytest.fixture
def look(recorded_console: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(recorded_console)


def emptied(ingesting: IngesterProcess) -> None:
    """A turn has a time limit: a busy machine needs several."""
    while ingesting.run_once():
        pass


def error_rows(look: Connection) -> int:
    return look.value("select count(*) from error") or 0


def test_only_a_queue_that_is_to_be_is_emptied(look: Connection) -> None:
    queue = Queue.objects.create(schema="public", table="error", kind="error")
    ingesting = IngesterProcess()
    ingesting.run_once()
    assert error_rows(look) == 2603
    queue.ingest = True
    queue.save()
    emptied(ingesting)
    assert error_rows(look) == 0
    assert store.count(look, ArchiveFilter(), 10_000).number == 2603 - 6, "six are confirmations, not failures"
    (row,) = Process.objects.filter(role="ingester")
    ingesting.run_once()
    row.refresh_from_db()
    assert row.received == 2603


def test_a_queue_that_may_not_be_emptied_says_so_on_its_page(look: Connection) -> None:
    """SELECT and DELETE are not enough: locking rows requires UPDATE."""
    Queue.objects.create(schema="public", table="error", kind="error", ingest=True)
    with change_detector.nothing_but_select(look, ["public", "messages"]) as clerk:
        look.run(f"grant delete on error to {clerk['USER']}")
        with elsewhere("queues", **clerk):
            ingesting = IngesterProcess()
            ingesting.run_once()
            ingesting.run_once()
            page = unescape(signed_in().get("/queues/public/error/").content.decode())
    assert "Cannot empty public.error: The database role may not do this." in page
    assert error_rows(look) == 2603


def test_a_table_that_is_gone_stops_no_other(look: Connection, caplog: pytest.LogCaptureFixture) -> None:
    Queue.objects.create(schema="public", table="a gone one", kind="error", ingest=True)
    Queue.objects.create(schema="public", table="error", kind="error", ingest=True)
    ingesting = IngesterProcess()
    ingesting.run_once()
    emptied(ingesting)
    assert error_rows(look) == 0
    assert caplog.text.count("Cannot empty public.a gone one: The table is gone.") == 1, "said once, not every second"
    assert "The table is gone" in Process.objects.get(role="ingester").last_error


def test_a_queue_whose_trigger_speaks_of_another_server_stops_no_other(look: Connection) -> None:
    look.run("create table errors (like public.error including defaults)")
    look.run("insert into errors (id, headers, body) select id, headers, body from public.error limit 3")
    look.run("""create function public.peer() returns trigger language plpgsql as $$
        begin raise 'could not establish connection' using errcode = '08001'; end $$""")
    look.run("create trigger peer before delete on public.error for each row execute function public.peer()")
    for table in ("error", "errors"):
        Queue.objects.create(schema="public", table=table, kind="error", ingest=True)
    emptied(IngesterProcess())
    assert (error_rows(look), look.value("select count(*) from errors")) == (2603, 0)


def test_only_what_is_still_an_error_queue_of_an_allowed_schema_is_emptied(look: Connection) -> None:
    """Switched on once; since then the name belongs to another table, or to a schema that is not allowed."""
    queue = Queue.objects.create(schema="public", table="error", kind="input", ingest=True)
    Queue.objects.create(schema="elsewhere", table="error", kind="error", ingest=True)
    look.run("create schema elsewhere; create table elsewhere.error (like public.error including defaults)")
    look.run("insert into elsewhere.error (id, headers, body) select id, headers, body from public.error limit 3")
    ingesting = IngesterProcess()
    ingesting.run_once()
    assert (error_rows(look), look.value("select count(*) from elsewhere.error")) == (2603, 3)
    queue.kind = "error"
    queue.save()
    emptied(ingesting)
    assert (error_rows(look), look.value("select count(*) from elsewhere.error")) == (0, 3)


def test_ingestion_switched_on_for_one_database_is_off_in_another(
    look: Connection, databases: Databases, connect: Callable[[str], Connection], caplog: pytest.LogCaptureFixture
) -> None:
    """QUEUES_URL now names a production database with an error queue of the same name."""
    queue = Queue.objects.create(schema="public", table="error", kind="error", ingest=True)
    emptied(IngesterProcess())
    assert error_rows(look) == 0
    with databases.clone("recorded") as production, queues_at(production):
        ingesting = IngesterProcess()
        ingesting.run_once()
        ingesting.run_once()
        assert error_rows(connect(production)) == 2603
        queue.refresh_from_db()
        assert not queue.ingest
        assert AuditEntry.objects.get(noun="queue").after == {"ingest": False}
        assert "another database" in caplog.text
        queue.ingest = True  # switched on in this database
        queue.save()
        emptied(IngesterProcess())
        assert error_rows(connect(production)) == 0


def test_flooded_queue_ends_its_turn_after_a_time_limit(look: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the flood would delay the heartbeat and other queues."""
    monkeypatch.setattr("pgqueue_admin.workers.processes.ingester_process.AT_MOST", 0.0)
    look.run("create table errors (like public.error including defaults)")
    look.run("insert into errors (id, headers, body) select id, headers, body from public.error limit 3")
    for table in ("error", "errors"):
        Queue.objects.create(schema="public", table=table, kind="error", ingest=True)
    ingesting = IngesterProcess()
    assert ingesting.run_once(), "there is more"
    assert (error_rows(look), look.value("select count(*) from errors")) == (2403, 0)


def test_the_supervisor_keeps_one(house: House, console_database: str) -> None:
    house.supervise("--without", "sampler", "--without", "alerter")
    row = until(lambda: Process.objects.filter(role="ingester", state="running").first(), what="an ingester")
    assert row is not None
    house.close()
    within(1, lambda: not alive(row.pid), "gone with its supervisor")


@contextmanager
def queues_at(dsn: str) -> Iterator[None]:
    before = dict(connections["queues"].settings_dict)
    connections["queues"].settings_dict.update(environ.Env.db_url_config(dsn))
    try:
        yield
    finally:
        queue_database.close()
        connections["queues"].settings_dict.update(before)
