"""``manage.py sampler``: measure all queues every second. The supervisor keeps one running."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.workers.sampler import sampler_process

OTHER = "The database of QUEUES_URL_ALIAS. Default: the first, of QUEUES_URL."


class Command(BaseCommand):
    help = "Samples all queues every second. The supervisor keeps one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        aliases = [each.alias for each in looked_at()]
        parser.add_argument("--database", default="", choices=aliases, metavar="ALIAS", help=OTHER)

    def handle(self, *args: Any, **options: Any) -> None:
        insist_on_own_sessions()
        of = next((each for each in looked_at() if each.alias == options["database"]), None)
        sampler_process.run(of)
