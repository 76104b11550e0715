"""manage.py pg_cron install|remove|status: let the queues' server itself run the work of each minute."""

from typing import Any

import django.db
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql.cron_jobs import CronMissing
from pgqueue_admin.formatting import times
from pgqueue_admin.lease.schedules.cron_timetable import tz_of
from pgqueue_admin.management.act_command import caller
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.models import outage
from pgqueue_admin.services import pg_cron
from pgqueue_admin.services.endpoint_change import ActRefused

UNSCHEDULE = "It can lose a message: select cron.unschedule('{}')."


class Command(BaseCommand):
    help = "Manages pg_cron's jobs on the queues' server: end expired locks, NOTIFY again, send due messages."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("install", help="Installs three jobs, run every minute, or replaces earlier versions.")
        verbs.add_parser("remove", help="Removes them. Beat and the supervisor go on.")
        verbs.add_parser("status", help="Shows the jobs and the result of each last run.")
        verbs.add_parser("print", help="Only print the SQL: for an image's init scripts.")
        for verb in ("install", "remove"):
            verbs.choices[verb].add_argument(
                "--as", dest="who", default=caller(), help="Whose name is kept. Default: yours."
            )

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(options.get("who", ""))
        except (CronMissing, ActRefused, DatabaseError) as error:
            raise CommandError(describe(error)) from error
        except django.db.Error as error:  # the console's own database
            raise CommandError(f"The console's database {outage.describe(error)}. {error}".strip()) from error

    def _install(self, who: str) -> None:
        for name in pg_cron.install(who, "command"):
            self.stdout.write(f"{name}: each minute.")

    def _remove(self, who: str) -> None:
        self.stdout.write(f"{pg_cron.remove(who, 'command')} jobs removed.")

    def _print(self, _: str) -> None:
        self.stdout.write(pg_cron.script(), ending="")

    def _status(self, _: str) -> None:
        for state in pg_cron.status():
            self.stdout.write(f"{state.name}: {_said(state)}")


def _said(state: pg_cron.JobState) -> str:
    if state.seen is None:
        return "not there."
    parts = [] if state.seen.active else ["switched off."]
    if state.is_ours and not state.is_current:
        parts.append("of another version: install it again.")
    if not state.is_ours:
        parts.append(UNSCHEDULE.format(state.name))
    if state.seen.ended_at is None:
        parts.append("has not run yet.")
    else:
        parts.append(f"{state.seen.status} {times.sentence(state.seen.ended_at, tz_of('UTC'))}: {state.seen.message}")
    return " ".join(parts)
