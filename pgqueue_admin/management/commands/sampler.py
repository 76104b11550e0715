"""``manage.py sampler``: look at all queues every second. The supervisor keeps one running."""

from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.workers.sampler import sampler_process


class Command(BaseCommand):
    help = "Looks at all queues every second and stores what it saw. The supervisor keeps one."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        insist_on_own_sessions()
        sampler_process.run()
