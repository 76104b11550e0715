"""manage.py outbox_keeper: relay and clean up outbox tables of others, where a person has switched that on."""

from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.workers.processes import outbox_keeper_process


class Command(BaseCommand):
    help = "Relays and cleans up outboxes of others that are switched on. The supervisor keeps one while needed."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        insist_on_own_sessions()
        outbox_keeper_process.run()
