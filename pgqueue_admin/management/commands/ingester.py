"""manage.py ingester: empty the error queues that are to be, into the archive."""

from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.workers.processes import ingester_process


class Command(BaseCommand):
    help = "Moves what arrives in error queues with ingestion on into the archive. The supervisor keeps one."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        insist_on_own_sessions()
        ingester_process.run()
