"""``manage.py seed``: fill the embedded queue database. The command exists only where the demo is installed."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from pgqueue_admin.demo import recorded
from pgqueue_admin.demo.install import install
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.monitor.tables import Kind
from pgqueue_admin.records.source import source
from pgqueue_admin.workers.queue_rows import row_of


class Command(BaseCommand):
    help = "Fill the embedded queue database with the recorded NServiceBus shop and the demo's endpoints."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.PGQUEUE["EMBEDDED"]:
            raise CommandError("QUEUES_URL names a database of somebody: nothing is ever seeded there.")
        self._restore()
        # nobody else empties it here: no ServiceControl runs beside the recorded queues
        row_of("public", "error", Kind.ERROR, ingest=True)
        install()

    def _restore(self) -> None:
        try:
            with source().dialect.connect(source().dsn, application_name="pgqueue-admin seed") as connection:
                recorded.restore(connection, datetime.now(UTC))
        except AlreadyExists:
            return
        self.stdout.write("         Restored the recorded NServiceBus shop, its times shifted to now")
