"""``manage.py trial``: run requested trials of dead messages, without effect. The supervisor starts it when needed."""

from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions, insist_on_tables
from pgqueue_admin.workers.trials import trial_process


class Command(BaseCommand):
    help = "Runs handlers on dead messages without effect, for trials. The supervisor starts it while one waits."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        insist_on_own_sessions()
        insist_on_tables()
        trial_process.run()
