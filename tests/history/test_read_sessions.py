"""A hung reader does not hold a snapshot for ever: its session is terminated from outside, and no other."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import psycopg
import pytest
from django.conf import settings

from pgqueue_admin.history.sources import read_sessions
from pgqueue_admin.history.sources.read_sessions import ReadOverdue, for_looking
from pgqueue_admin.history.spark.data_frames import source_options
from pgqueue_admin.history.spark.queue_reader import QueuePartition, QueueReader
from tests.hostile import overloads
from tests.pooler import Pooler
from tests.waiting import until

Connect = Callable[[str], Any]
LARGE = "create table public.large as select repeat(md5(n::text), 1000) as body from generate_series(1, 3000) n"
READER = """
import sys
from pgqueue_admin.history.spark.data_frames import source_options
from pgqueue_admin.history.spark.data_frames import source_options
from pgqueue_admin.history.spark.queue_reader import QueuePartition, QueueReader
reader = QueueReader(source_options(sys.argv[1], []))
for batch in reader.read(QueuePartition("select body from public.large")):
    print(batch.num_rows, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def read_from() -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """A reader of a large table that has its first rows; it reads on by a part for each input line."""
    readers: list[subprocess.Popen[str]] = []

    def read(uri: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        readers.append(subprocess.Popen([sys.executable, "-c", READER, uri], stdin=pipe, stdout=pipe, text=True))
        assert readers[-1].stdout
        assert int(readers[-1].stdout.readline()) > 0
        return readers[-1]

    yield read
    for reader in readers:
        reader.kill()
        reader.communicate()


def session_of(database: Any, uri: str) -> Any:
    """The session of the reader with this name."""
    return database.one(SESSION, {"name": dict(parse_qsl(urlsplit(uri).query))["application_name"]})


def waits(database: Any, uri: str) -> bool:
    """Whether it waits for its reader and holds back vacuum."""
    session = session_of(database, uri)
    return session is not None and session.wait_event == "ClientWrite" and session.backend_xmin is not None


def without(limit: str, uri: str) -> str:
    return re.sub(rf"%20-c%20{limit}%3D\w+", "", uri)


SESSION = """select wait_event, backend_xmin, clock_timestamp() - query_start > interval '1.5 s' as is_late
    from pg_stat_activity where application_name = %(name)s"""


def test_over_tcp_the_kernel_ends_it(
    database: Any, read_from: Callable[[str], "subprocess.Popen[str]"], console_database: str
) -> None:
    """Even if the driver that would terminate it is stopped with its reader, or gone."""
    database.run(LARGE)
    uri = without("statement_timeout", for_looking(console_database, limit=3))
    os.kill(read_from(uri).pid, signal.SIGSTOP)
    until(lambda: session_of(database, uri) is None, what="it keeps nothing back")


def test_the_session_of_a_reader_that_stands_still_is_ended(
    database: Any, read_from: Callable[[str], "subprocess.Popen[str]"], console_database: str
) -> None:
    """Over a Unix socket no kernel timeout applies, and its own limit takes effect by luck alone. A session within its
    limit is left alone, however slow.
    """
    database.run(LARGE)
    still, slow = (without("tcp_user_timeout", for_looking(console_database)) for _ in range(2))
    os.kill(read_from(still).pid, signal.SIGSTOP)
    goes_on = read_from(slow)
    until(lambda: waits(database, still) and session_of(database, still).is_late, what="it is overdue")
    until(lambda: waits(database, slow), what="the other one waits for its reader, too")
    assert not ReadOverdue(slow).ended()
    assert until(ReadOverdue(still, limit=1.5).ended, what="the overdue one is ended")
    until(lambda: session_of(database, still) is None, what="it keeps nothing back")
    assert waits(database, slow)
    goes_on.communicate("\n" * 1000)
    assert goes_on.returncode == 0, "it reads to the end"


@pytest.fixture
def latin(database: Any, console_database: str) -> Iterator[str]:
    """The DSN of an empty database in a single-byte encoding."""
    database.run("create database latin encoding 'LATIN1' locale 'C' template template0")
    yield f"{console_database.rpartition('/')[0]}/latin"
    database.run("drop database latin with (force)")


def test_texts_are_utf_8_whatever_the_database_has(latin: str, connect: Connect) -> None:
    """Files are read by other programs, and Parquet readers assume UTF-8."""
    headers = '{"Straße":"Zürich"}'
    connect(latin).run("create table public.audit as select %(headers)s::text as headers", {"headers": headers})
    select = "select headers from public.audit where headers like '%ü%'"
    for asked in ("", "?client_encoding=latin1"):
        reader = QueueReader(source_options(for_looking(f"{latin}{asked}"), []))
        (batch,) = reader.read(QueuePartition(select))
        assert batch.column("headers").to_pylist() == [headers]


def test_no_batch_takes_workers_of_the_server(database: Any, console_database: str, connect: Connect) -> None:
    """However many rows PostgreSQL expects: it is a production server, and a batch is read in parts anyway."""
    database.run(LARGE)
    free = ("parallel_setup_cost=0", "parallel_tuple_cost=0", "min_parallel_table_scan_size=0")
    asked = f"{console_database}?options={quote(' '.join(f'-c {cost}' for cost in free))}"
    plans = [connect(uri).all("explain select body from public.large") for uri in (asked, for_looking(asked))]
    assert ["Gather" in str(plan) for plan in plans] == [True, False]


def test_session_within_its_limit_is_left_alone(
    database: Any, read_from: Callable[[str], "subprocess.Popen[str]"], console_database: str
) -> None:
    """Checked by a watchdog whose time is up: the session has time left, or is another reader's."""
    database.run(LARGE)
    uri = for_looking(console_database)
    read_from(uri)
    until(lambda: waits(database, uri), what="it waits for its reader")
    for mine, limit in ((uri, 3600.0), (for_looking(console_database), 0.0)):
        overdue = ReadOverdue(mine, limit)
        overdue._look_at = 0.0
        assert not overdue.ended()
    assert waits(database, uri)


def asked(uri: str, statement: str) -> list[Any]:
    """Through Arrow's driver, as batches are read."""
    reader = QueueReader(source_options(uri, []))
    return [row for batch in reader.read(QueuePartition(statement)) for row in batch.to_pylist()]


def test_a_batch_is_read_by_who_can_only_read(database: Any, console_database: str) -> None:
    """The queues' tables belong to other roles."""
    uri = for_looking(console_database)
    names = ("default_transaction_read_only", "statement_timeout", "timezone")
    ask = ", ".join(f"current_setting('{name}') as {name}" for name in names)
    assert asked(uri, f"select {ask}") == [dict(zip(names, ("on", "10min", "UTC"), strict=True))]
    written = "insert into messages.message (message) values ('{}') returning id"
    with pytest.raises(Exception, match="read-only transaction"):
        asked(uri, written)
    assert database.value("select count(*) from messages.message") == 0


def test_a_statement_of_a_batch_has_an_end(console_database: str) -> None:
    with pytest.raises(Exception, match="statement timeout"):
        asked(for_looking(console_database, limit=1), "select pg_sleep(60)::text as slept")


def test_reading_locks_out_nobody(database: Any, console_database: str) -> None:
    """While a batch is read, its tables accept writes and deletes."""
    database.run("create table public.busy as select n, repeat('x', 10000) as body from generate_series(1, 2000) n")
    reader = QueueReader(source_options(for_looking(console_database), []))
    batches = reader.read(QueuePartition("select n, body from public.busy"))
    assert next(batches).num_rows
    held = "select distinct mode from pg_locks where relation = 'busy'::regclass and pid <> pg_backend_pid()"
    assert [row.mode for row in database.all(held)] == ["AccessShareLock"]
    assert database.run("delete from public.busy where n = 7") == 1
    assert sum(batch.num_rows for batch in batches) > 0


@pytest.fixture
def pooler(console_database: str) -> Iterator[Pooler]:
    """It drops start-up options, like PgBouncer with ``ignore_startup_parameters = options``."""
    made = Pooler(console_database, size=4, mode="session")
    yield made
    made.close()


def test_behind_a_pooler_a_batch_is_read_as_elsewhere(database: Any, pooler: Pooler) -> None:
    names = ("default_transaction_read_only", "statement_timeout", "timezone", "row_security", "search_path")
    ask = ", ".join(f"current_setting('{name}') as {name}" for name in names)
    wanted = dict(zip(names, ("on", "10min", "UTC", "off", "pg_catalog,pg_temp"), strict=True))
    assert asked(for_looking(pooler.dsn), f"select {ask}") == [wanted]


def test_a_batch_runs_no_strangers_code_behind_a_pooler(
    database: Any, console_database: str, pooler: Pooler, connect: Connect
) -> None:
    """Its statements call functions unqualified, and one in ``public`` matches better than the intended one."""
    database.run("create table public.billed as select 'x'::varchar as headers, 1 as n")
    statement = "select left(headers, n) || right(headers, n) as said from public.billed where left(headers, n) = 'x'"
    with overloads.made(database, console_database):
        with psycopg.connect(console_database) as as_before, pytest.raises(psycopg.Error, match="a stranger ran"):
            as_before.execute(statement)
        database.run("alter sequence public.ran restart")
        assert asked(for_looking(pooler.dsn), statement) == [{"said": "xx"}]
        assert not database.value("select is_called from public.ran")


def test_read_is_refused_where_others_may_create_on_the_path(
    database: Any, console_database: str, pooler: Pooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's own path, before anything can be set: it would run foreign functions."""
    monkeypatch.setitem(settings.PGQUEUE, "HISTORY_URL", "")
    monkeypatch.setattr(read_sessions, "queue_database", lambda: SimpleNamespace(dsn=pooler.dsn))
    assert read_sessions.read_from(database) == pooler.dsn
    with overloads.made(database, console_database):
        database.run("""create function public.differs(regproc, integer) returns boolean language plpgsql as
            $$ begin perform pg_catalog.nextval('public.ran'); return $1 operator(pg_catalog.<>) $2::oid; end $$""")
        database.run("create operator public.<> (function = public.differs, leftarg = regproc, rightarg = integer)")
        with pytest.raises(read_sessions.PathOpen, match=r"eve may create.*revoke create on schema") as refused:
            read_sessions.read_from(database)
        assert asked(for_looking(pooler.dsn), "select 1 as one") == [{"one": 1}]
        assert database.value("select is_called from public.ran"), "or the refusal is not needed any more"
        monkeypatch.setattr(read_sessions, "queue_database", lambda: SimpleNamespace(dsn=console_database))
        assert read_sessions.read_from(database) == console_database, "it sets its path with the start"
        monkeypatch.setattr(read_sessions, "queue_database", lambda: SimpleNamespace(dsn=pooler.dsn))
        database.run(str(refused.value).partition("run: ")[2])
        assert read_sessions.read_from(database) == pooler.dsn
        database.run("drop operator public.<> (regproc, integer)")
        database.run("drop function public.differs(regproc, integer)")
