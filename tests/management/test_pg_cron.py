"""`manage.py pg_cron`: the server does the minutely upkeep itself, safely beside our own (L6, L9)."""

import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import cron_jobs, postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.lease.schedules.runner import GRACE
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.workers.processes.expirer_process import ExpirerProcess
from pgqueue_admin.workers.processes.lease_clocks import ScheduleClock
from tests import pg_cron
from tests.databases import Databases
from tests.lease.tables import archived, let_expire, waiting
from tests.lease.test_schedules import add, due, outcomes
from tests.waiting import until

HOW_TO = (Path(__file__).resolve().parents[2] / "docs/how-to/schedules.md").read_text(encoding="utf-8")
NAMES = ["pgqueue {}: end expired locks", "pgqueue {}: notify again", "pgqueue {}: send what is due"]


def run(*argv: str) -> list[str]:
    out = io.StringIO()
    call_command("pg_cron", *argv, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture(scope="module")
def cron_server() -> Iterator[PostgreSQL]:
    with pg_cron.server() as server:
        with postgresql().connect(server.dsn()) as admin:
            for name in (pg_cron.HOME, "other"):
                admin.run(f"create database {name}")
        for name in (pg_cron.HOME, "other"):
            with postgresql().connect(server.dsn(name)) as session:
                schema.install(session)
        with postgresql().connect(server.dsn(pg_cron.HOME)) as session:
            session.run("create extension pg_cron")
        yield server


@pytest.fixture
def shop(cron_server: PostgreSQL, databases: Databases, console_database: str) -> Iterator[Connection]:
    """The console's queue database is the one that has pg_cron."""
    yield from _queues(cron_server, databases, pg_cron.HOME)


@pytest.fixture
def other(cron_server: PostgreSQL, databases: Databases, console_database: str) -> Iterator[Connection]:
    """The console's queue database is another one of the same server."""
    yield from _queues(cron_server, databases, "other")


def _queues(server: PostgreSQL, databases: Databases, name: str) -> Iterator[Connection]:
    dsn = server.dsn(name)
    with databases.as_django(dsn, ("queues",)), postgresql().connect(dsn) as session:
        yield session
        session.run("truncate messages.message, messages.message_archive, messages.schedule cascade")
    with postgresql().connect(server.dsn(pg_cron.HOME)) as home:
        home.run("select cron.unschedule(jobid) from cron.job")


@pytest.mark.pg_cron
def test_install_status_and_remove(shop: Connection) -> None:
    names = [name.format(pg_cron.HOME) for name in NAMES]
    assert run("status") == [f"{name}: not there." for name in names]
    assert run("install", "--as", "ana") == [f"{name}: each minute." for name in names]
    run("install", "--as", "ana")
    assert shop.all("select jobname::text, schedule from cron.job order by 1") == [
        (name, "* * * * *") for name in names
    ]
    assert all(line.endswith("has not run yet.") for line in run("status"))
    shop.run("update cron.job set command = 'select 1', active = false where jobname like '%: notify again'")
    assert run("status")[1] == f"{names[1]}: switched off. of another version: install it again. has not run yet."
    assert run("remove", "--as", "ana") == ["3 jobs removed."]
    assert run("remove", "--as", "ana") == ["0 jobs removed."]
    verbs = list(AuditEntry.objects.order_by("id").values_list("verb", "noun", "who"))
    assert verbs == [(verb, "pg_cron", "ana") for verb in ("create", "create", "remove", "remove")]


@pytest.mark.pg_cron
def test_pg_cron_does_the_upkeep_within_a_real_minute(shop: Connection) -> None:
    """The server alone expires a lock, announces a waiting message again and sends what is due."""
    queue = LeaseQueue(queue_dsn())
    lost, waits = queue.publish_many(["lost", "waits"])
    assert queue.claim(1)[0].id == lost
    let_expire(shop, lost)
    due(shop, add(shop), timedelta(seconds=1))
    shop.listen("new_message")
    run("install")
    until(lambda: len(archived(shop)) == 1 and outcomes(shop) == ["sent"], seconds=150, what="pg_cron has done it")
    told: set[str] = set()

    def is_told() -> bool:
        told.update(each.payload for each in shop.notifications(0.1))
        return str(waits) in told

    until(is_told, seconds=150, what="it is notified again")
    assert archived(shop, "message_id::int, result::text, handled_by") == [(lost, "lock_expired", "pg_cron")]
    assert len(waiting(shop)) == 2
    until(lambda: sum(" succeeded " in line for line in run("status")) == 3, seconds=150, what="its runs are kept")
    assert shop.value("select who from messages.schedule_look") == "pg_cron"
    queue.close()


def queue_dsn() -> str:
    from pgqueue_admin.models.queue_database import queue_database

    return queue_database().dsn


@pytest.mark.pg_cron
def test_job_statements_do_what_our_upkeep_does(shop: Connection) -> None:
    """Run directly; pg_cron itself would need more minutes."""
    queue = LeaseQueue(queue_dsn())
    ids = queue.publish_many(range(3))
    queue.claim(1)
    let_expire(shop, ids[0])
    due(shop, add(shop), timedelta(seconds=1))
    for job in cron_jobs.jobs(shop, postgresql(), GRACE):
        shop.run(job.command)
    assert archived(shop, "message_id::int, handled_by, queue") == [(ids[0], "pg_cron", '"messages"."message"')]
    assert (outcomes(shop), len(waiting(shop))) == (["sent"], 3)
    queue.close()


@pytest.mark.pg_cron
def test_beat_child_and_pg_cron_at_once_do_no_harm(shop: Connection, cron_server: PostgreSQL) -> None:
    """1,000 expired locks and 60 due times have exactly one outcome each."""
    queue = LeaseQueue(queue_dsn())
    ids = queue.publish_many(range(1000))
    queue.claim(1000)
    shop.run("update messages.message set lock_expires_at = lock_expires_at - interval '1 day'")
    for number in range(20):
        due(shop, add(shop, f"no. {number}"), *(timedelta(seconds=each) for each in (1, 2, 3)))
    begin, faults = threading.Barrier(6), list[BaseException]()

    def as_pg_cron() -> None:
        with postgresql().connect(cron_server.dsn(pg_cron.HOME)) as session:
            for job in cron_jobs.jobs(session, postgresql(), GRACE):
                session.run(job.command)

    def at_once(work: object) -> None:
        begin.wait(10)
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            faults.append(error)

    works = [
        as_pg_cron,
        as_pg_cron,
        tasks.keep_leases,
        tasks.run_schedules,
        ScheduleClock().run_once,
        ScheduleClock().run_once,
    ]
    threads = [threading.Thread(target=at_once, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert sorted(int(row[0]) for row in archived(shop, "message_id")) == ids
    assert (outcomes(shop), len(waiting(shop))) == (["sent"] * 60, 60)
    queue.close()


class AtOnce:
    """Processes that expire locks, each in a loop in its own thread."""

    def __init__(self, dsn: str):
        self._dsn, self._over, self.faults = dsn, threading.Event(), list[BaseException]()

    @contextmanager
    def running(self, works: Iterable[Callable[[], None]]) -> Iterator[None]:
        self._over.clear()
        threads = [threading.Thread(target=self._run, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(60)
        assert self.faults == []

    def child(self) -> None:
        process = ExpirerProcess()
        try:
            while not self._over.is_set():
                process.run_once()
                self._over.wait(min(0.05, process.rest))
        finally:
            process.close()

    def beat(self) -> None:
        while not self._over.wait(0.01):
            tasks.keep_leases()

    def pg_cron(self) -> None:
        with postgresql().connect(self._dsn) as session:
            (ends, *_) = cron_jobs.jobs(session, postgresql(), GRACE)
            while not self._over.wait(0.01):
                session.run(ends.command)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.faults.append(error)
        finally:
            connections.close_all()


def dead_workers(shop: Connection, queue: LeaseQueue) -> tuple[list[int], list[int]]:
    """Expire locks of our workers and of original clients; return the ids that end and those that are released."""
    queue.publish_many(range(300))
    ends = [lease.id for lease in queue.claim(100)]
    back = [lease.id for lease in queue.claim(100, releases=9)]
    later = "(now() at time zone 'utc') + interval '1 hour'"
    shop.run(f"update messages.message set lock_expires_at = {later} where lock_expires_at is null")
    theirs = [each for each in waiting(shop) if each not in {*ends, *back}]
    shop.run(
        "update messages.message set lock_expires_at = lock_expires_at - interval '1 day',"
        " token_expires_at = token_expires_at - interval '1 day'"
    )
    return [*ends, *theirs], back


@pytest.mark.pg_cron
def test_beat_child_and_pg_cron_end_locks_at_once(shop: Connection, cron_server: PostgreSQL) -> None:
    """Each message is ended or released once: first by each process alone, then by all in a race."""
    queue, at_once = LeaseQueue(queue_dsn()), AtOnce(cron_server.dsn(pg_cron.HOME))
    ended: list[int] = []
    alone = [[at_once.child], [at_once.beat], [at_once.pg_cron]]
    together = [at_once.child, at_once.beat, at_once.beat, at_once.pg_cron, at_once.pg_cron]
    for works in [*alone, *[together] * 5]:
        with at_once.running(works):
            ends, back = dead_workers(shop, queue)
            until(lambda: not shop.value("select count(lock_expires_at) from messages.message"), what="all are ended")
        assert waiting(shop) == back
        leases = queue.claim(100)
        assert [(lease.id, lease.attempts) for lease in leases] == [(each, 2) for each in back]
        assert all(map(queue.finish, leases))
        ended += [*ends, *back]
    rows = archived(shop, "message_id::int, result::text, handled_by, second_ending_of")
    assert sorted(row[0] for row in rows) == sorted(ended)
    assert {row[2] for row in rows if row[1] == "lock_expired"} == {"pgqueue expiry", "pg_cron"}
    assert {row[3] for row in rows} == {None}
    queue.close()


@pytest.mark.pg_cron
def test_a_database_beside_the_one_that_has_the_jobs(other: Connection, cron_server: PostgreSQL) -> None:
    run("install")
    with postgresql().connect(cron_server.dsn(pg_cron.HOME)) as home:
        assert home.all("select jobname::text, database from cron.job order by 1") == [
            (name.format("other"), "other") for name in NAMES
        ]
    assert len(run("status")) == 3
    assert run("remove") == ["3 jobs removed."]


@pytest.mark.pg_cron
def test_the_grants_that_are_told_suffice(shop: Connection, cron_server: PostgreSQL, databases: Databases) -> None:
    """A role without superuser rights installs the jobs, and they run with its rights."""
    dsn = cron_server.dsn(pg_cron.HOME, "pgqueue_queues")
    password = dsn.partition("pgqueue_queues:")[2].partition("@")[0]
    shop.run(f"create role pgqueue_queues login password '{password}'")
    (grants,) = re.findall(r"```sql\n(.*?)```", HOW_TO, re.DOTALL)
    dedented = [line.strip() for line in grants.splitlines() if "create extension" not in line]
    shop.run("\n".join(dedented))
    shop.run(
        "grant usage on schema messages to pgqueue_queues;"
        "grant select, insert, update, delete on all tables in schema messages to pgqueue_queues;"
        "grant usage on all sequences in schema messages to pgqueue_queues"
    )
    due(shop, add(shop), timedelta(seconds=1))
    with databases.as_django(dsn, ("queues",)):
        assert len(run("install")) == 3
        until(lambda: outcomes(shop) == ["sent"], seconds=150, what="pg_cron sends it as that role")
        until(lambda: sum(" succeeded " in line for line in run("status")) == 3, seconds=150, what="all have run")
        assert run("remove") == ["3 jobs removed."]
    shop.run("drop owned by pgqueue_queues; drop role pgqueue_queues")


@pytest.mark.pg_cron
def test_the_originals_job_that_may_lose_a_message_is_named(shop: Connection) -> None:
    shop.all("select cron.schedule('messages.message:expired_lock_cleanup', '* * * * *', 'select 1')")
    assert "It can lose a message: select cron.unschedule('messages.message:expired_lock_cleanup')" in run("status")[-1]
    assert run("remove") == ["0 jobs removed."]
    assert shop.value("select count(*) from cron.job") == 1


def test_a_server_without_it_says_what_is_missing(console_database: str) -> None:
    with pytest.raises(CommandError, match="pg_cron"):
        run("install")
    assert not AuditEntry.objects.exists()
