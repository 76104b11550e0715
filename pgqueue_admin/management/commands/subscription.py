"""manage.py subscription: lists subscriptions, ends one or restores it, through the same service as the page."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.act_command import WRONG
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery, subscriptions
from pgqueue_admin.monitor.subscriptions import SubscriptionTables
from pgqueue_admin.services import subscriptions as services

EXIT_CODES = {code: said for code, said in act_command.EXIT_CODES.items() if code != act_command.NOT_ALL}


class Command(BaseCommand):
    help = "Lists subscriptions, ends one, and takes that back."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        act_command.listing(verbs.add_parser("list", help="Every row of the watched subscription tables."))
        end = act_command.asking(verbs.add_parser("end", help="Its endpoint stops receiving that event within 5 s."))
        end.add_argument("endpoint", help="The subscriber, as list shows it.")
        end.add_argument("topic", help="The event's type, likewise.")
        again = verbs.add_parser("again", help="Puts back what end has deleted.")
        again.add_argument("change", type=int, help="The number that end said.")
        act_command.as_whom(again)

    def handle(self, *, verb: str, **options: Any) -> None:
        with act_command.ending(options):
            {"list": self._list, "end": self._end, "again": self._again}[verb](options)

    def _list(self, options: dict[str, Any]) -> None:
        found = _found()
        rows = [{"endpoint": row.endpoint, "topic": row.topic, "queue": row.queueaddress} for row in found.rows]
        if options["json"]:
            return dump(self.stdout, {"subscriptions": rows, "unread": found.unread})
        for row in rows:
            self.stdout.write(act_command.line(*row.values()))
        for why in found.unread:
            self.stdout.write(act_command.line(why))
        self.stdout.write(f"{pluralize(len(rows), 'subscription')}.")

    def _end(self, options: dict[str, Any]) -> None:
        meant = [row for row in _found().rows if (row.endpoint, row.topic) == (options["endpoint"], options["topic"])]
        if len(meant) != 1:
            number = "no such subscription" if not meant else f"{len(meant)} of them, in several tables: use the page"
            raise CommandError(f"Nothing was unsubscribed. There is {number}.", returncode=WRONG)
        [row] = meant
        act_command.confirmed(self.stderr, f"Unsubscribe {row.endpoint} from {row.topic}?", options["yes"])
        entry = services.unsubscribe(row, options["who"], "command", options["reason"])
        change = f" Change {entry.pk}." if entry.pk else ""  # else the audit failed, and the log says it
        self.stdout.write(f"{row.endpoint} stops receiving {row.topic} within 5 s.{change}")

    def _again(self, options: dict[str, Any]) -> None:
        entry = AuditEntry.objects.filter(pk=options["change"], noun="subscription", verb="unsubscribe").first()
        if entry is None:
            raise CommandError("Nothing was subscribed again. There is no such change.", returncode=WRONG)
        services.subscribe_again(entry, options["who"], "command")
        self.stdout.write(f"{(entry.before or {}).get('endpoint', '')} is subscribed again.")


def _found() -> SubscriptionTables:
    with queue_database().read_session() as connection:
        return _read(connection)


def _read(connection: Connection) -> SubscriptionTables:
    return subscriptions.find(connection, discovery.find(connection, queue_database().schemas, {}))
