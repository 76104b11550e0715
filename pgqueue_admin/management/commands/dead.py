"""manage.py dead: dead messages from a shell, through the same service as the pages (C4)."""

import sys
from typing import Any, NoReturn

import django.db
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError, TableMissing
from pgqueue_admin.management import dead_messages, dead_one, dead_plan
from pgqueue_admin.management.act_command import caller
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.models import Operation, notify, outage, queue_lookup
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import purges, trials
from pgqueue_admin.services.operations import (
    call_back,
    confirmation,
    edits,
    lifecycle,
    queries,
    redirects,
    runner,
    selection,
)
from pgqueue_admin.services.operations.errors import EmptySelection, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.plans import Planned

NOT_ALL, WRONG, NOTHING, NOT_CONFIRMED, NO_DATABASE = 1, 2, 3, 4, 5
EXIT_CODES = {
    0: "every message was acted on, or listed; or would succeed",
    NOT_ALL: "some were skipped or failed, each with its reason; or would not succeed",
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
CALL_BACK, PURGE = "call-back", "purge"
NEEDS = {"retry": "dead", "discard": "dead", "restore": "discarded"}


class Command(BaseCommand):
    help = (
        "Lists, tries, retries, edits, copies, discards and restores dead messages, calls back what a retry has sent, "
        "steers staged retries, and purges queues. Asks as pages do: above 20 messages for a reason, before more than "
        "100 discards or a purge for their number."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="Newest first.")
        listing.add_argument("--state", choices=dead_messages.STATES, default="dead", help="Default: dead.")
        listing.add_argument("--limit", type=int, default=50, help="How many, newest first. Default: 50.")
        trying = verbs.add_parser("try", help="Runs the handlers without effect and says what a retry would do.")
        trying.add_argument("ids", nargs="*", type=int, help="Archive ids; or choose by filters.")
        trying.add_argument("--all", action="store_true", help="Without ids and filters: the newest dead messages.")
        trying.add_argument("--limit", type=int, default=trials.MOST, help="How many, at most and by default 200.")
        trying.add_argument("--reason", default="", help="Why; kept in the audit.")
        trying.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")
        for verb in NEEDS:
            self._add_act(self._asking(verbs.add_parser(verb, help=VERBS[verb])))
        back = verbs.add_parser(CALL_BACK, help="Makes a retry's unreceived messages dead again.")
        self._asking(back).add_argument("operation", type=int, help="The retry's number.")
        purged = verbs.add_parser(PURGE, help="Moves a queue's waiting messages into the bin.")
        self._asking(purged).add_argument("address", help='The queue: Billing, or \'"public"."Billing"\'.')
        dead_one.add_verbs(verbs)
        steered = verbs.add_parser(dead_plan.VERB, help="Shows and steers a retry that goes in stages.")
        self._named(steered)
        dead_plan.add_verb(steered)
        for parser_of_one in (back, purged, steered):
            parser_of_one.add_argument("--json", action="store_true", help="One JSON document, for programs.")
        into = "An address that is no input queue, such as an error queue: retried into only when named. Repeatable."
        verbs.choices["retry"].add_argument("--into", action="append", default=[], metavar="ADDRESS", help=into)
        by_rules = "Follow retry rules; the preview names their targets."
        dead_messages.add_edit_arguments(verbs.choices["retry"])
        dead_plan.add_arguments(verbs.choices["retry"])
        verbs.choices["retry"].add_argument("--by-rules", action="store_true", help=by_rules)
        for each in ("list", "try", *NEEDS):
            dead_messages.add_filters(verbs.choices[each])
            verbs.choices[each].add_argument("--json", action="store_true", help="One JSON document, for programs.")

    def _add_act(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", type=int, help="Archive ids; or choose by filters.")
        parser.add_argument(
            "--all", action="store_true", help="Without ids and filters: every message that this applies to."
        )

    def _asking(self, parser: CommandParser) -> CommandParser:
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        return self._named(parser)

    def _named(self, parser: CommandParser) -> CommandParser:
        parser.add_argument("--reason", default="", help="Why; kept in the audit.")
        parser.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")
        return parser

    def handle(self, *, verb: str, **options: Any) -> None:
        if fault := dead_messages.fault(options):
            self._wrong(f"{fault} Nothing was done.")
        try:
            self._do(verb, options)
        except TableMissing as error:
            hint = "The archive is made by `manage.py engine_schema`."
            raise CommandError(f"{error} {hint}", returncode=NO_DATABASE) from error
        except DatabaseError as error:
            raise CommandError(describe(error), returncode=NO_DATABASE) from error
        except django.db.Error as error:  # the console's own database
            said_by_it = f"The console's database {outage.describe(error)}. {error}".strip()
            raise CommandError(said_by_it, returncode=NO_DATABASE) from error
        except EmptySelection as error:
            raise CommandError(str(error), returncode=NOTHING) from error
        except OutcomeUnknown as error:
            raise CommandError(str(error), returncode=NO_DATABASE) from error
        except (OperationRefused, AddressUnreadable) as error:
            raise CommandError(str(error), returncode=WRONG) from error

    def _do(self, verb: str, options: dict[str, Any]) -> None:
        if verb == "list":
            self._list(options)
        elif verb == "try":
            self._try(options)
        elif verb in (dead_one.EDIT, dead_one.COPY):
            (dead_one.edit if verb == dead_one.EDIT else dead_one.copy)(self.stdout, options)
        elif verb == dead_plan.VERB:
            steered = (options[each] for each in ("act", "operation", "rate", "who", "reason", "json"))
            dead_plan.do(self.stdout, *steered)
        else:
            self._act(verb, options)

    def _try(self, options: dict[str, Any]) -> None:
        chosen, limit = self._chosen("try", options), min(options["limit"], trials.MOST)
        if isinstance(chosen, ArchiveFilter):
            with queue_database().read_session(searching=True) as connection:
                chosen = [message.id for message in store.page(connection, chosen, limit=limit).messages]
        trial = trials.start(chosen[:limit], options["who"], "command", confirmation.reason(options["reason"]))
        items = dead_messages.wait_for_trial(trial)
        dead_messages.print_trial(self.stdout, trial, items, options["json"])
        if any(each.outcome != "succeeds" for each in items):
            sys.exit(NOT_ALL)

    def _list(self, options: dict[str, Any]) -> None:
        state = "" if options["state"] == "all" else options["state"]
        with queue_database().read_session() as connection:
            page = store.page(connection, dead_messages.filter_of(options, state), limit=options["limit"])
        dead_messages.print_messages(self.stdout, page.messages, page.after is not None, options["json"])

    def _act(self, verb: str, options: dict[str, Any]) -> None:
        edit = dead_messages.edit_of(options) if verb == "retry" else None
        operation = self._frozen(verb, options, (options["who"], "command", options["reason"]))
        if edit:
            operation = edits.propose(operation.pk, edit, options["who"])
        plan = self._planned(operation, options)
        reason = self._confirm(operation, options, plan)
        rules = [each.number for each in redirects.rules()] if options.get("by_rules") else []
        lifecycle.start(operation.pk, options["who"], reason, options.get("into", ()), planned=plan, rules=rules)
        if plan:
            return self._stage(operation, options)
        self._run(operation)
        with queue_database().read_session() as connection:
            notable = queries.not_done(connection, operation.pk)
        dead_messages.print_result(self.stdout, operation, notable, options["json"])
        if operation.done != operation.count:
            sys.exit(NOT_ALL)

    def _planned(self, operation: Operation, options: dict[str, Any]) -> Planned | None:
        """Return the plan. An invalid plan is reported before the question, and the frozen set is given up."""
        try:
            return dead_plan.planned(operation, options) if operation.kind == Operation.Kind.RETRY else None
        except OperationRefused:
            lifecycle.cancel(operation.pk, options["who"])
            raise

    def _stage(self, operation: Operation, options: dict[str, Any]) -> None:
        operation.refresh_from_db()
        if not options["detach"]:
            dead_plan.follow(self.stderr, operation)
        dead_plan.show(self.stdout, operation.pk, options["json"])
        operation.refresh_from_db()
        if not options["detach"] and operation.done != operation.count:
            sys.exit(NOT_ALL)

    def _frozen(self, verb: str, options: dict[str, Any], who_and_why: tuple[str, str, str]) -> Operation:
        if verb == CALL_BACK:
            return call_back.prepare(options["operation"], *who_and_why)
        if verb == PURGE:
            address = queue_database().dialect.parse_address(queue_lookup.canonical(options["address"]))
            return purges.prepare(address, *who_and_why)
        return selection.freeze(verb, self._chosen(verb, options), *who_and_why)

    def _chosen(self, verb: str, options: dict[str, Any]) -> Any:
        by_filter = dead_messages.narrows(options)
        if options["ids"] and (by_filter or options["all"]):
            self._wrong("Give ids or filters, not both.")
        if not (options["ids"] or by_filter or options["all"]):
            self._wrong(f"Say which messages to {verb}: ids, filters, or --all. Nothing was done.")
        return options["ids"] or dead_messages.filter_of(options, NEEDS.get(verb, "dead"))

    def _confirm(self, operation: Operation, options: dict[str, Any], staged: Planned | None) -> str:
        """Ask after the set is frozen, so that exactly what is confirmed is done. Return the reason given."""
        if options["yes"]:
            return ""
        with queue_database().read_session() as connection:
            rules = redirects.rules() if options.get("by_rules") else []
            retry = operation.kind == Operation.Kind.RETRY
            targets = queries.retry_targets(connection, operation, rules) if retry else None
            dead_messages.print_edit(self.stderr, connection, operation)
        dead_messages.print_question(self.stderr, operation, targets, options.get("into", ()))
        if staged:
            self.stderr.write(f"Plan: {staged.said}; {staged.limits_said}.")
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
        """Ask on stderr: a program may read stdout."""
        self.stderr.write(question, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip()

    def _leave(self, operation: Operation, options: dict[str, Any], why: str) -> NoReturn:
        lifecycle.cancel(operation.pk, options["who"])
        raise CommandError(why, returncode=NOT_CONFIRMED)

    def _run(self, operation: Operation) -> None:
        """Run the operation; if housekeeping runs it too, wait for its chunk."""
        with notify.listen(notify.OPERATION) as heard:
            runner.run(operation.pk)
            operation.refresh_from_db()
            while operation.state in runner.UNFINISHED:
                list(heard.notifications(1.0))
                runner.run(operation.pk)
                operation.refresh_from_db()

    def _wrong(self, why: str) -> NoReturn:
        raise CommandError(why, returncode=WRONG)
