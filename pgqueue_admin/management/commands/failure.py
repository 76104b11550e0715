"""manage.py failure: lists failures; sets owner, ticket and note; acknowledges them."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive import failure_groups
from pgqueue_admin.archive.failure_groups import STATES, FailureFigures
from pgqueue_admin.archive.fingerprints import are_kept
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import durations
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.act_command import WRONG
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models import FailureGroup, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import failure_groups as groups
from pgqueue_admin.services.failure_groups import AcknowledgementEnd, Assignment, FailureActRefused

EXIT_CODES = {code: said for code, said in act_command.EXIT_CODES.items() if code != act_command.NOT_CONFIRMED}
Act = Callable[[Connection, str], Any]


class Command(BaseCommand):
    help = "Lists failures: dead messages by cause. Sets their owner, ticket and note, and acknowledges them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = act_command.listing(verbs.add_parser("list", help="New and growing first; then most dead."))
        listing.add_argument("--state", choices=STATES, help="Only these.")
        listing.add_argument("--owner", help="Only those whose owner this is; '' for nobody's.")
        assign = verbs.add_parser("assign", help="Sets owner, ticket or note; what is not given stays.")
        assign.add_argument("--owner", help="A person or a team; '' for nobody.")
        assign.add_argument("--take", action="store_true", help="You, or who --as names, are its owner.")
        assign.add_argument("--ticket", help="A number or an address.")
        assign.add_argument("--note", help="Kept through retries, and in mails.")
        acknowledge = verbs.add_parser(
            "acknowledge", help="Somebody knows, until a time or a count; 7 days by default."
        )
        acknowledge.add_argument("--for", dest="lasts", metavar="LENGTH", help="How long, such as 4h or 2d.")
        acknowledge.add_argument("--until-dead", type=int, metavar="N", help="Instead: until so many are dead.")
        verbs.add_parser("withdraw", help="Takes an acknowledgement back.")
        for verb in ("assign", "acknowledge", "withdraw"):
            help_of_one = "Fingerprint, as list shows it. Repeatable."
            verbs.choices[verb].add_argument("fingerprints", nargs="+", metavar="FINGERPRINT", help=help_of_one)
            act_command.as_whom(verbs.choices[verb])
        acknowledge.add_argument("--reason", default="", help="Why; kept in the audit.")

    def handle(self, *, verb: str, **options: Any) -> None:
        with act_command.ending(options):
            if verb == "list":
                return self._list(options)
            act = {"assign": self._assign, "acknowledge": self._acknowledge, "withdraw": self._withdraw}[verb](options)
            with queue_database().read_session() as connection:
                self._each(connection, list(dict.fromkeys(options["fingerprints"])), act, _done(verb))

    def _each(self, connection: Connection, fingerprints: list[str], act: Act, said: str) -> None:
        refused: dict[str, FailureActRefused] = {}
        for each in fingerprints:
            try:
                act(connection, each)
                self.stdout.write(f"{each} {said}.")
            except FailureActRefused as error:
                refused[each] = error
        if len(refused) == len(fingerprints):
            raise refused[fingerprints[0]]
        for each, why in refused.items():
            self.stdout.write(act_command.line(each, "skipped", why))
        if refused:
            sys.exit(act_command.NOT_ALL)

    def _list(self, options: dict[str, Any]) -> None:
        with queue_database().read_session() as connection:
            if not are_kept(connection):
                raise CommandError("Failures are not grouped yet: run manage.py engine_schema.", returncode=WRONG)
            figures = failure_groups.groups(connection)
            known = FailureGroup.objects.in_bulk([each.fingerprint for each in figures])
            untold = groups.causes(connection, [each.fingerprint for each in figures if each.fingerprint not in known])
        now = database_clock.now()
        found = [_row(each, known.get(each.fingerprint) or untold.get(each.fingerprint), now) for each in figures]
        found = [row for row in found if options["state"] in (None, row["state"])]
        found = [row for row in found if options["owner"] in (None, row["owner"])]
        found.sort(key=lambda row: (row["acknowledged"], STATES.index(row["state"]), -row["dead"]))
        if options["json"]:
            return dump(self.stdout, {"failures": found})
        for row in found:
            whose = ", ".join(filter(None, [row["owner"] or "nobody", "acknowledged" if row["acknowledged"] else ""]))
            said = " ".join(f"{row['exception']}: {row['message']}".split())[:100]
            self.stdout.write(act_command.line(row["fingerprint"], f"{row['state']:<8}{row['dead']:>8}", whose, said))
        self.stdout.write(f"{pluralize(len(found), 'failure')}, {sum(row['dead'] for row in found):,} dead.")

    def _assign(self, options: dict[str, Any]) -> Act:
        owner = options["who"] if options["take"] else options["owner"]
        said = Assignment(owner, options["ticket"], options["note"])
        if said == Assignment():
            raise CommandError("Nothing was changed. Give --owner, --take, --ticket or --note.", returncode=WRONG)
        return lambda connection, each: groups.assign(connection, each, said, options["who"], "command")

    def _acknowledge(self, options: dict[str, Any]) -> Act:
        who, reason, count = options["who"], options["reason"], options["until_dead"]
        seconds = durations.parse(options["lasts"]) if options["lasts"] else None
        if options["lasts"] and seconds is None:
            raise CommandError(f"Nothing was acknowledged. {options['lasts']} is no length: try 4h.", returncode=WRONG)
        longest = groups.LONGEST.total_seconds() + 1  # refused, like anything longer
        lasts = timedelta(seconds=min(seconds, longest)) if seconds is not None else None if count else groups.LASTS
        end = AcknowledgementEnd(lasts, count)
        return lambda connection, each: groups.acknowledge(connection, each, end, who, "command", reason)

    def _withdraw(self, options: dict[str, Any]) -> Act:
        return lambda connection, each: groups.withdraw(connection, each, options["who"], "command")


def _row(figures: FailureFigures, cause: FailureGroup | None, now: Any) -> dict[str, Any]:
    cause = cause or FailureGroup(pk=figures.fingerprint, exception="unknown")
    is_kept = cause.first_at if not cause._state.adding else None
    return {
        "fingerprint": figures.fingerprint,
        "state": figures.state(is_kept),
        "dead": figures.dead,
        "first_at": figures.first_at,
        "last_at": figures.last_at,
        "exception": cause.exception,
        "frame": cause.frame,
        "message": cause.said,
        "owner": cause.owner,
        "ticket": cause.ticket,
        "note": cause.note,
        "acknowledged": cause.is_acknowledged(figures.all_dead, now),
        "acknowledged_until": cause.acknowledged_until,
        "acknowledged_to": cause.acknowledged_to,
    }


def _done(verb: str) -> str:
    return {"assign": "is changed", "acknowledge": "is acknowledged", "withdraw": "is open again"}[verb]
