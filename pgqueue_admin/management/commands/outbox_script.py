"""manage.py outbox_script: print the SQL that a DBA runs for an endpoint's outbox."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.outbox.script import DIALECTS, KEEP_DAYS, MOST_DAYS, WHATS, NoSuchScript, OutboxScript


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
            "was dispatched so long ago as --keep says. decisions: the table of two-phase commit. Default: create.",
        )
        parser.add_argument(
            "--keep",
            type=int,
            default=KEEP_DAYS,
            metavar="DAYS",
            help=f"How long the job of --what cleanup keeps a dispatched record, 1 to {MOST_DAYS:,} days: a later "
            f"duplicate is handled again. Default: {KEEP_DAYS}.",
        )

    def handle(self, *, dialect: Any, endpoint: str, what: Any, **options: Any) -> None:
        try:
            script = OutboxScript(dialect, endpoint, options["schema"], options["prefix"], options["keep"])
            self.stdout.write(script.text(what), ending="")
        except (AddressUnreadable, NoSuchScript) as error:
            raise CommandError(f"There is no script: {error}.") from error
