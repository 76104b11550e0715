"""manage.py lease expire: what beat does for the lease queue each minute, once, by hand or by another clock."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import upkeep
from pgqueue_admin.management.database_errors import why
from pgqueue_admin.models.queue_database import queue_database


class Command(BaseCommand):
    help = "Works on the lease queue, messages.message."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("expire", help="Ends or releases expired locks, and notifies of unprocessed messages again.")

    def handle(self, *, verb: str, **options: Any) -> None:
        database = queue_database()
        try:
            with database.writing() as connection:
                done = upkeep.keep(connection, database.dialect)
        except DatabaseError as error:
            raise CommandError(why(error)) from error
        if options["verbosity"]:
            self.stdout.write(
                f"{done.archived} archived as lock_expired, {done.released} released, {done.told} notified again."
            )
