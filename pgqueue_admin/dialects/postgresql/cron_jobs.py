"""Jobs of pg_cron, the server's scheduler: one for each statement to run every minute."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.conninfo import make_conninfo

from pgqueue_admin.dialects.connection import Connection, Params
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.dialects.postgresql.dialect import PostgreSQL
from pgqueue_admin.dialects.postgresql.query import literal

WHO = "pg_cron"
ROUND = 1000  # messages in one run; the next run continues
SCHEDULES = 500
DEFAULT_HOME = "postgres"
_HEAD = """-- Jobs of pg_cron, each minute: end expired locks, NOTIFY again, send what is due by the clock.
-- Made by `manage.py pg_cron print`. Whoever runs it owns them.
"""


class CronJob(NamedTuple):
    """``command``: the statement to run every minute, values included."""

    name: str
    command: str


class JobSeen(NamedTuple):
    """A job as pg_cron reports it. ``status`` and later fields: of its last finished run."""

    id: int
    name: str
    command: str
    active: bool
    status: str | None
    ended_at: datetime | None
    message: str | None


class CronMissing(Exception):
    """pg_cron is not in this server, or not in the database in which it keeps its jobs."""


def jobs(session: Connection, dialect: PostgreSQL, grace: float) -> list[CronJob]:
    """The jobs for the session's database; ``grace`` as in ``ScheduleStore.run``."""
    database = session.one(dialect.cron.facts()).database  # type: ignore[union-attr]
    lease, schedule = dialect.lease, dialect.schedule
    queue = addressing.canonical(QUEUE)
    statements: dict[str, tuple[Any, Params]] = {
        "end expired locks": (dialect.leases.expire_query(session, ROUND), {"handled_by": WHO, "queue": queue}),
        "notify again": (lease.renotify(waits=lease.waits, most=ROUND), {}),
        "send what is due": (schedule.run(most=SCHEDULES), {"grace": grace, "who": WHO}),
    }
    return [
        CronJob(f"pgqueue {database}: {what}", literal(session, query, params))
        for what, (query, params) in statements.items()
    ]


def script(session: Connection, dialect: PostgreSQL, wanted: Sequence[CronJob]) -> str:
    """The statements of ``install`` as a psql script for the database with the jobs."""
    calls = [literal(session, dialect.cron.put(), job._asdict()) for job in wanted]
    return "\n".join([_HEAD, *(f"{call};\n" for call in calls)])


def install(session: Connection, home: Connection, dialect: PostgreSQL, wanted: Sequence[CronJob]) -> None:
    """Install all jobs or none. ``home``: a session in the database with pg_cron's jobs, perhaps the same one."""
    database = session.one(dialect.cron.facts()).database  # type: ignore[union-attr]
    with home.transaction():
        for job in wanted:
            if home is session:
                home.one(dialect.cron.put(), job._asdict())
            else:
                home.one(dialect.cron.put_elsewhere(), {**job._asdict(), "database": database})


def remove(session: Connection, home: Connection, dialect: PostgreSQL, wanted: Sequence[CronJob]) -> int:
    """Remove our jobs; return how many."""
    return len(home.all(dialect.cron.drop(), _which(session, dialect, wanted)))


def seen(session: Connection, home: Connection, dialect: PostgreSQL, wanted: Sequence[CronJob]) -> list[JobSeen]:
    """Installed jobs of ours and of the original."""
    return [JobSeen(*row) for row in home.all(dialect.cron.jobs(), _which(session, dialect, wanted))]


@contextmanager
def home_of(session: Connection, dialect: PostgreSQL, dsn: str) -> Iterator[Connection]:
    """A session in the database with the jobs, as the same role. Raises CronMissing."""
    if session.one(dialect.cron.facts()).version:  # type: ignore[union-attr]
        yield session
        return
    if not session.one(dialect.cron.facts()).is_available:  # type: ignore[union-attr]
        raise CronMissing("This server has no pg_cron: Debian's package is postgresql-15-cron.")
    name = session.value(dialect.cron.home()) or DEFAULT_HOME
    with dialect.connect(make_conninfo(dsn, dbname=name), application_name="pgqueue-admin pg_cron") as home:
        if not home.one(dialect.cron.facts()).version:  # type: ignore[union-attr]
            raise CronMissing(
                f"pg_cron is not installed in the database {name}: it needs shared_preload_libraries = 'pg_cron' and a "
                "restart, then a superuser's: create extension pg_cron."
            )
        yield home


def _which(session: Connection, dialect: PostgreSQL, wanted: Sequence[CronJob]) -> dict[str, Any]:
    database = session.one(dialect.cron.facts()).database  # type: ignore[union-attr]
    return {"database": database, "names": [job.name for job in wanted]}
