"""manage.py lease: expire does once what beat does each minute for the lease queue; watch goes on doing it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import upkeep
from pgqueue_admin.management.database_errors import why
from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.processes import expirer_process


class Command(BaseCommand):
    help = "Works on the lease queue, messages.message."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("expire", help="Ends or releases expired locks, and notifies of unprocessed messages again.")

        verbs.add_parser("watch", help="Ends or releases expired locks within a second. The supervisor keeps one.")

    def handle(self, *, verb: str, **options: Any) -> None:
        if verb == "watch":
            insist_on_own_sessions()
            return expirer_process.run()
        return self._expire(options["verbosity"])

    def _expire(self, verbosity: int) -> None:
        database = queue_database()
        try:
            with database.writing() as connection:
                done = upkeep.keep(connection, database.dialect)
        except DatabaseError as error:
            raise CommandError(why(error)) from error
        if verbosity:
            self.stdout.write(
                f"{done.archived} archived as lock_expired, {done.released} released, {done.told} notified again."
            )
