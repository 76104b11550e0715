"""``manage.py seed``: fill the embedded queue database. The command exists only where the demo is installed."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from pgqueue_admin.demo import restore_recording
from pgqueue_admin.demo.install import install
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.workers.sampler.sampler_store import row_of


class Command(BaseCommand):
    help = "Fill the embedded queue database with the recorded NServiceBus shop and the demo's endpoints."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.PGQUEUE["EMBEDDED"]:
            raise CommandError("QUEUES_URL names a database of somebody: nothing is ever seeded there.")
        self._restore()
        # we ingest it: no ServiceControl runs beside the recorded queues
        row_of("public", "error", TableKind.ERROR, ingest=True)
        install()

    def _restore(self) -> None:
        try:
            with queue_database().dialect.connect(
                queue_database().dsn, application_name="pgqueue-admin seed"
            ) as connection:
                restore_recording.restore(connection, datetime.now(UTC))
        except AlreadyExists:
            return
        self.stdout.write("         Restored the recorded NServiceBus shop, its times shifted to now")
