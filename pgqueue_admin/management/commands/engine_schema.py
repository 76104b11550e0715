"""manage.py engine_schema: create the engine's tables beside the queues, by hand, once."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive import schema
from pgqueue_admin.archive.errors import SchemaRefused
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.management import text_index
from pgqueue_admin.management.database_errors import describe
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
            help="The id that NOTIFY dead_message carries from now on. Default: unchanged; archive at first.",
        )

        parser.add_argument(
            "--print",
            action="store_true",
            dest="prints",
            help="Only print the SQL for a new database: for psql, or an image's init scripts.",
        )

        parser.add_argument(
            "--index-text",
            action="store_true",
            help="Index the archive's texts: searches find words in all of it. Says size and time before, and asks.",
        )

        parser.add_argument("--drop-text-index", action="store_true", help="Drop that index again.")

        parser.add_argument("--yes", action="store_true", help="--index-text: build it without asking.")

    def handle(self, *, prints: bool, index_text: bool, drop_text_index: bool, yes: bool, **options: Any) -> None:
        try:
            if prints:
                self.stdout.write(schema.script(), ending="")
            elif index_text:
                text_index.build(self.stdout.write, self._warn, lambda: yes or self._asked())
            elif drop_text_index:
                text_index.drop(self.stdout.write)
            else:
                self._install(**options)
        except (SchemaRefused, DatabaseError) as error:
            raise CommandError(describe(error)) from error

    def _install(self, *, adopt: bool, dead_payload: schema.DeadPayload | None, **options: Any) -> None:
        with queue_database().write_session() as connection:
            installed = schema.install(connection, adopt=adopt, warn=self._warn, dead_payload=dead_payload)
        if options["verbosity"]:
            self.stdout.write(_SAID[installed.did].format(installed.version))
            if dead_payload:
                self.stdout.write(f"A NOTIFY dead_message carries the {_WHOSE[dead_payload]} id from now on.")

    def _asked(self) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("Nothing was changed: nobody is there to be asked. --yes builds it.")
        return input("Build it? [y/N] ").strip().lower() in ("y", "yes")

    def _warn(self, sentence: str) -> None:
        self.stderr.write(self.style.WARNING(sentence))
