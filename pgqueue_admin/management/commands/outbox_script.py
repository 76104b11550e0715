"""manage.py outbox_script: what a DBA runs for an endpoint's outbox, as text."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.outbox.script import DIALECTS, WHATS, NoSuchScript, OutboxScript


class Command(BaseCommand):
    help = "Prints SQL for an endpoint's outbox table, for a DBA; runs nothing."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dialect", choices=DIALECTS, required=True, help="The database that has the outbox.")
        parser.add_argument("--endpoint", required=True, help="Its name, as Billing or Shop.Web.")
        parser.add_argument(
            "--schema", default="", help="Of the table. Default: public, dbo, or that of the session that runs it."
        )
        parser.add_argument("--prefix", default=None, help="Start of the table's name. Default: the endpoint's name.")
        parser.add_argument(
            "--what",
            choices=WHATS,
            default="create",
            help="create: the table. migrate: what the original's table lacks. cleanup: a job that deletes what "
            "was dispatched seven days ago. decisions: the table of two-phase commit. Default: create.",
        )

    def handle(self, *, dialect: Any, endpoint: str, what: Any, **options: Any) -> None:
        try:
            script = OutboxScript(dialect, endpoint, options["schema"], options["prefix"])
            self.stdout.write(script.text(what), ending="")
        except (AddressUnreadable, NoSuchScript) as error:
            raise CommandError(f"There is no script: {error}.") from error
