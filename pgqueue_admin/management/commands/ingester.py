"""manage.py ingester: move messages of error queues with ingestion into the archive."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.management.commands.sampler import OTHER
from pgqueue_admin.management.start_requirements import insist_on_own_sessions, insist_on_tables
from pgqueue_admin.models.queue_database import looked_at, of_alias
from pgqueue_admin.workers.processes import ingester_process


class Command(BaseCommand):
    help = "Archives messages from error queues whose ingestion is on. The supervisor keeps one."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        aliases = [each.alias for each in looked_at() if each.is_writable]
        parser.add_argument("--database", default="", choices=aliases, metavar="ALIAS", help=OTHER)

    def handle(self, **options: Any) -> None:
        insist_on_own_sessions()
        insist_on_tables()
        ingester_process.run(of_alias(options["database"]))
