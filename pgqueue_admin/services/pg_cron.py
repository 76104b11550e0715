"""Jobs of pg_cron, the server's own scheduler, in place of ours: installed and removed with an audit entry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import cron_jobs, postgresql
from pgqueue_admin.dialects.postgresql.cron_jobs import CronJob, JobSeen
from pgqueue_admin.lease.schedules.runner import GRACE
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.schedules import store_of


class JobState(NamedTuple):
    """``seen``: None if the job does not exist. ``is_ours``: else it is the original's."""

    name: str
    seen: JobSeen | None
    is_ours: bool
    is_current: bool


def install(person: str, origin: str) -> list[str]:
    """Install the jobs; return their names. Raises CronMissing, SchedulesMissing, database errors: nothing was done."""
    with _home() as (session, home, wanted), _audited("create", person, origin, len(wanted)):
        cron_jobs.install(session, home, postgresql(), wanted)
    return [job.name for job in wanted]


def remove(person: str, origin: str) -> int:
    """Remove the jobs; return how many there were."""
    with _home() as (session, home, wanted), _audited("remove", person, origin, len(wanted)):
        return cron_jobs.remove(session, home, postgresql(), wanted)


def script() -> str:
    """Return a script for psql, such as an image's init scripts. The server needs no pg_cron."""
    with queue_database().write_session() as session:
        store_of(session)
        return cron_jobs.script(session, postgresql(), cron_jobs.jobs(session, postgresql(), GRACE))


def status() -> list[JobState]:
    with _home() as (session, home, wanted):
        found = {each.name: each for each in cron_jobs.seen(session, home, postgresql(), wanted)}
    ours = [JobState(job.name, seen := found.pop(job.name, None), True, _is_current(job, seen)) for job in wanted]
    return [*ours, *(JobState(name, seen, False, False) for name, seen in found.items())]


def _is_current(job: CronJob, seen: JobSeen | None) -> bool:
    return seen is not None and seen.command == job.command


@contextmanager
def _home() -> Iterator[tuple[Connection, Connection, list[CronJob]]]:
    database = queue_database()
    with database.write_session() as session:
        store_of(session)  # raises if the tables are missing
        wanted = cron_jobs.jobs(session, postgresql(), GRACE)
        with cron_jobs.home_of(session, postgresql(), database.dsn) as home:
            yield session, home, wanted


@contextmanager
def _audited(verb: str, person: str, origin: str, count: int) -> Iterator[None]:
    about: dict[str, Any] = {"noun": "pg_cron", "subject": "jobs of pg_cron", "count": count, "origin": origin}
    with audited(who=person, verb=verb, **about) as act:
        yield
        act.done = count
