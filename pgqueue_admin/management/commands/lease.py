"""manage.py lease: acts on lease messages; expire does once what beat does each minute, watch does it continuously."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.lease import expiry
from pgqueue_admin.management import act_command, lease_messages
from pgqueue_admin.management.act_command import EXIT_CODES
from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.processes import expirer_process

__all__ = ["EXIT_CODES", "Command"]


class Command(BaseCommand):
    help = (
        "Works on the lease queue, messages.message. Acts leave alone what is locked anew or has ended since the look."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        lease_messages.add_verbs(verbs)
        verbs.add_parser("expire", help="Ends or releases expired locks, and notifies of unprocessed messages again.")
        verbs.add_parser(
            "watch",
            help="Ends or releases expired locks, sends due schedules, follows retry rules. The supervisor keeps one.",
        )

    def handle(self, *, verb: str, **options: Any) -> None:
        if verb == "watch":
            insist_on_own_sessions()
            return expirer_process.run()
        with act_command.ending(options):
            if verb == "list":
                lease_messages.listed(self.stdout, options)
            elif verb == "publish":
                lease_messages.published(self.stdout, options)
            elif verb == "release":
                lease_messages.released(self.stdout, self.stderr, options)
            elif verb == "end":
                lease_messages.ended(self.stdout, self.stderr, options)
            else:
                self._expire(options["verbosity"])

    def _expire(self, verbosity: int) -> None:
        database = queue_database()
        with database.write_session() as connection:
            done = expiry.end_and_renotify(connection, database.dialect)
        if verbosity:
            self.stdout.write(
                f"{done.archived} archived as lock_expired, {done.released} released, {done.told} notified again."
            )
