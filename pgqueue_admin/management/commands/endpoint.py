"""manage.py endpoint NAME: create an endpoint's queues and let the supervisor run it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.management.act_command import caller
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.transport import SettingsRefused
from pgqueue_admin.workers.processes import register_endpoint


class Command(BaseCommand):
    help = "Makes the queue tables of a new endpoint and has it run. Handlers: docs/reference/managed-endpoints.md."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="Its name, and its queue's.")
        parser.add_argument(
            "--schema", default=queue_database().default_schema, help="Of its tables. Default: the first watched."
        )
        parser.add_argument(
            "--processes", dest="desired_processes", type=int, default=1, help="0: only prepare it. Default: 1."
        )
        parser.add_argument("--new", action="store_true", help="Accept an endpoint that no application here declares.")
        parser.add_argument("--error-queue", default="", help='An address such as "public"."error".')
        parser.add_argument("--subscription-table", default="", help="Address; else SubscriptionRouting in its schema.")
        parser.add_argument("--bodystring", action="store_true", help="Its tables get the column bodystring (T6).")
        parser.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")

    def handle(self, **options: Any) -> None:
        facts = {each: options[each] for each in ("schema", "desired_processes", "error_queue", "subscription_table")}
        try:
            if not options["new"]:
                register_endpoint.refuse_unknown(options["name"], options["schema"])
            row = register_endpoint.enrol(options["name"], facts, options["who"], "command", options["bodystring"])
        except (SettingsRefused, ActRefused, AddressUnreadable, DatabaseError) as error:
            raise CommandError(describe(error)) from error
        self.stdout.write(f"{row.name} receives from {row.schema}.{row.table}, {row.desired_processes} wanted.")
