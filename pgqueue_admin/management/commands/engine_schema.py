"""manage.py engine_schema: make the engine's tables beside the queues, by hand, once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive import schema
from pgqueue_admin.archive.errors import SchemaRefused
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.management.database_errors import why
from pgqueue_admin.models.queue_database import queue_database

_SAID = {
    "installed": "The engine's tables are made, in schema messages: version {}.",
    "adopted": "The tables of oliverlambson/pgmq are adopted: version {}.",
    "updated": "The engine's tables are brought to version {}.",
    "nothing": "The engine's tables are there already, version {}. Nothing was changed.",
}
_WHOSE = {"archive": "archive row's", "message": "message's"}


class Command(BaseCommand):
    help = "Makes the engine's tables (archive, lease queue, operation items) in the queue database, where missing."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--adopt",
            action="store_true",
            help="Take over the tables of oliverlambson/pgmq. This rewrites its archive under an exclusive lock.",
        )

        parser.add_argument(
            "--dead-payload",
            choices=("archive", "message"),
            help="Whose id a NOTIFY dead_message carries from now on. Without it as it stands: archive, at first.",
        )

        parser.add_argument(
            "--print",
            action="store_true",
            dest="prints",
            help="Only print the SQL that makes them where none is: for psql, or for the init scripts of an image.",
        )

    def handle(self, *, prints: bool, adopt: bool, dead_payload: schema.DeadPayload | None, **options: Any) -> None:
        if prints:
            self.stdout.write(schema.script(), ending="")
            return
        try:
            with queue_database().writing() as connection:
                installed = schema.install(connection, adopt=adopt, warn=self._warn, dead_payload=dead_payload)
        except (SchemaRefused, DatabaseError) as error:
            raise CommandError(why(error)) from error
        if options["verbosity"]:
            self.stdout.write(_SAID[installed.did].format(installed.version))
            if dead_payload:
                self.stdout.write(f"A NOTIFY dead_message carries the {_WHOSE[dead_payload]} id from now on.")

    def _warn(self, sentence: str) -> None:
        self.stderr.write(self.style.WARNING(sentence))
