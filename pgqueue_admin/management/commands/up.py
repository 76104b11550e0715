"""``manage.py up``: start everything, keep it running, and on Ctrl-C stop it again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.workers.supervisor import init_process
from pgqueue_admin.workers.supervisor.up import Up


class Command(BaseCommand):
    help = "Start PostgreSQL, Valkey, the console, workers and Celery, and keep them running until Ctrl-C."
    requires_system_checks: list[str] = []  # this command starts the database that checks query

    def handle(self, *args: Any, **options: Any) -> None:
        init_process.stay_behind()
        try:
            Up(self._say).run()
        except ServerFailed as error:
            raise CommandError(str(error)) from error

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()
