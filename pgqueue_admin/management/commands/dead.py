"""manage.py dead list|retry|discard|restore: dead messages from a shell, through the same service as the pages (C4)."""

import sys
from typing import Any, NoReturn

import django.db
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive import store
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError, TableMissing
from pgqueue_admin.management import dead_messages as said
from pgqueue_admin.management.actor import caller
from pgqueue_admin.management.database_errors import why
from pgqueue_admin.models import Operation, notify, outage
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import operations
from pgqueue_admin.services.operations import confirmation

NOT_ALL, WRONG, NOTHING, NOT_CONFIRMED, NO_DATABASE = 1, 2, 3, 4, 5
EXIT_CODES = {
    0: "every message was acted on, or listed",
    NOT_ALL: "some were skipped or failed, each with its reason",
    WRONG: "wrong arguments; nothing was done",
    NOTHING: "nothing matched; nothing was done",
    NOT_CONFIRMED: "not confirmed; nothing was done",
    NO_DATABASE: "a database does not answer, or refuses; a chunk that was not committed was not done",
}
UNCONFIRMED, YES = "Nothing was done. Confirm with y, or give --yes.", ("y", "Y", "yes", "Yes")
VERBS = {
    "retry": "Puts dead messages back into the queues they failed in.",
    "discard": "Sets dead messages aside.",
    "restore": "Makes discarded messages dead again.",
}
NEEDS = {"retry": "dead", "discard": "dead", "restore": "discarded"}


class Command(BaseCommand):
    help = (
        "Lists, retries, discards and restores dead messages. Asks as pages do: above 20 messages for a reason, before "
        "more than 100 discards for their number."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="Newest first.")
        listing.add_argument("--state", choices=said.STATES, default="dead", help="Default: dead.")
        listing.add_argument("--limit", type=int, default=50, help="How many, newest first. Default: 50.")
        for verb in NEEDS:
            self._add_act(verbs.add_parser(verb, help=VERBS[verb]))
        into = "An address that is no input queue, such as an error queue: retried into only when named. Repeatable."
        verbs.choices["retry"].add_argument("--into", action="append", default=[], metavar="ADDRESS", help=into)
        for each in verbs.choices.values():
            said.add_filters(each)
            each.add_argument("--json", action="store_true", help="One JSON document, for programs.")

    def _add_act(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", type=int, help="Archive ids; or choose by filters.")
        parser.add_argument(
            "--all", action="store_true", help="Without ids and filters: every message that this applies to."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        parser.add_argument("--reason", default="", help="Why; kept in the audit.")
        parser.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")

    def handle(self, *, verb: str, **options: Any) -> None:
        if fault := said.fault(options):
            self._wrong(f"{fault} Nothing was done.")
        try:
            self._list(options) if verb == "list" else self._act(verb, options)
        except TableMissing as error:
            hint = "The archive is made by `manage.py engine_schema`."
            raise CommandError(f"{error} {hint}", returncode=NO_DATABASE) from error
        except DatabaseError as error:
            raise CommandError(why(error), returncode=NO_DATABASE) from error
        except django.db.Error as error:  # the console's own
            said_by_it = f"The console's database {outage.describe(error)}. {error}".strip()
            raise CommandError(said_by_it, returncode=NO_DATABASE) from error
        except operations.EmptySelection as error:
            raise CommandError(str(error), returncode=NOTHING) from error
        except (operations.OperationRefused, AddressUnreadable) as error:
            raise CommandError(str(error), returncode=WRONG) from error

    def _list(self, options: dict[str, Any]) -> None:
        state = "" if options["state"] == "all" else options["state"]
        with queue_database().reading() as connection:
            page = store.page(connection, said.filter_of(options, state), limit=options["limit"])
        said.print_messages(self.stdout, page.messages, page.after is not None, options["json"])

    def _act(self, verb: str, options: dict[str, Any]) -> None:
        operation = operations.freeze(verb, self._chosen(verb, options), options["who"], "command", options["reason"])
        reason = self._confirm(operation, options)
        operations.start(operation.pk, options["who"], reason, options.get("into", ()))
        self._run(operation)
        with queue_database().reading() as connection:
            notable = operations.not_done(connection, operation.pk)
        said.print_result(self.stdout, operation, notable, options["json"])
        if operation.done != operation.count:
            sys.exit(NOT_ALL)

    def _chosen(self, verb: str, options: dict[str, Any]) -> Any:
        by_filter = said.narrows(options)
        if options["ids"] and (by_filter or options["all"]):
            self._wrong("Give ids or filters, not both.")
        if not (options["ids"] or by_filter or options["all"]):
            self._wrong(f"Say which messages to {verb}: ids, filters, or --all. Nothing was done.")
        return options["ids"] or said.filter_of(options, NEEDS[verb])

    def _confirm(self, operation: Operation, options: dict[str, Any]) -> str:
        """The set is fixed before the question, so that what is confirmed is what is done. Return the reason given."""
        if options["yes"]:
            return ""
        with queue_database().reading() as connection:
            targets = (
                operations.retry_targets(connection, operation) if operation.kind == Operation.Kind.RETRY else None
            )
        said.print_question(self.stderr, operation, targets, options.get("into", ()))
        if not sys.stdin.isatty():
            self._leave(operation, options, UNCONFIRMED)
        plan = confirmation.plan(operation)
        if (
            not plan.needs_count
            and self._typed(f"{operation.kind.capitalize()} {operation.count:,}? [y/N] ") not in YES
        ):
            self._leave(operation, options, UNCONFIRMED)
        count = self._typed(f"Type the count, {operation.count:,}, to go on: ") if plan.needs_count else ""
        reason = confirmation.reason(self._typed("Reason, kept in the audit: ")) if plan.needs_reason else ""
        if fault := plan.fault(reason, count):
            self._leave(operation, options, fault)
        return reason

    def _typed(self, question: str) -> str:
        """Asked on stderr: stdout may be read by a program."""
        self.stderr.write(question, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip()

    def _leave(self, operation: Operation, options: dict[str, Any], why: str) -> NoReturn:
        operations.cancel(operation.pk, options["who"])
        raise CommandError(why, returncode=NOT_CONFIRMED)

    def _run(self, operation: Operation) -> None:
        """Housekeeping may be at it as well: then this waits for what it has in hand."""
        with notify.listen(notify.OPERATION) as heard:
            operations.run(operation.pk)
            operation.refresh_from_db()
            while operation.state in operations.UNFINISHED:
                list(heard.notifications(1.0))
                operations.run(operation.pk)
                operation.refresh_from_db()

    def _wrong(self, why: str) -> NoReturn:
        raise CommandError(why, returncode=WRONG)
