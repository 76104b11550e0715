"""manage.py retry_rule: rules that redirect retries of dead messages, and rules that retry lease messages."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.archive.lease_rules import RESULTS
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models import RetryRule
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import lease_rules, retry_rules
from pgqueue_admin.services.lease_rules import RuleDraft

EXIT_CODES = {code: act_command.EXIT_CODES[code] for code in (0, act_command.WRONG, act_command.NO_DATABASE)}
LIST_LEASE, ADD_LEASE, REMOVE_LEASE = "list-lease", "add-lease", "remove-lease"


class Command(BaseCommand):
    help = (
        "Lists, adds and removes rules by which dead messages are retried to another queue, and those by which dead "
        "lease messages are retried by themselves."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        act_command.listing(verbs.add_parser("list", help="In the order in which they are asked."))
        add = act_command.named(verbs.add_parser("add", help="A retry asks for it: dead retry --by-rules."))
        add.add_argument("--type", default="", help="Message type, as Shop.PlaceOrder or Shop.*.")
        add.add_argument("--queue", default="", help="The queue where they died.")
        add.add_argument("--to", required=True, metavar="QUEUE", help="The queue that they go to.")
        remove = act_command.named(verbs.add_parser("remove", help="Operations that began with it go on with it."))
        remove.add_argument("number", type=int, help="As list shows it.")
        self._add_lease_arguments(verbs)

    def _add_lease_arguments(self, verbs: Any) -> None:
        act_command.listing(verbs.add_parser(LIST_LEASE, help="Of the lease queue, in the order that counts."))
        add = act_command.named(verbs.add_parser(ADD_LEASE, help="It is for lease messages that die from now on."))
        add.add_argument("--type", default="", help="Kind of message, as render or render.*. Default: any.")
        add.add_argument(
            "--ended", nargs="+", choices=RESULTS, default=["failed", "lock_expired"], help="How it ended."
        )
        add.add_argument("--times", type=int, default=3, help="Retries at most. Default: 3.")
        add.add_argument(
            "--wait", type=int, default=60, help="Seconds before the first, each later twice. Default: 60."
        )
        remove = act_command.named(verbs.add_parser(REMOVE_LEASE, help="What waited for it stays dead."))
        remove.add_argument("number", type=int, help="As list-lease shows it.")

    def handle(self, *, verb: str, **options: Any) -> None:
        acts = {
            "list": self._list,
            "add": self._add,
            "remove": self._remove,
            LIST_LEASE: self._list_lease,
            ADD_LEASE: self._add_lease,
            REMOVE_LEASE: self._remove_lease,
        }
        with act_command.ending(options):
            acts[verb](options)

    def _list(self, options: dict[str, Any]) -> None:
        fields = ("pk", "message_type", "queue", "target", "who")
        rules = [{name: getattr(rule, name) for name in fields} for rule in RetryRule.objects.all()]
        if options["json"]:
            return dump(self.stdout, {"rules": rules})
        for rule in rules:
            of = " of ".join(filter(None, [rule["message_type"] or "all", rule["queue"]]))
            self.stdout.write(act_command.line(f"{rule['pk']:>6}", f"{of} go to {rule['target']}, by {rule['who']}"))
        self.stdout.write(f"{pluralize(len(rules), 'rule')}.")

    def _add(self, options: dict[str, Any]) -> None:
        about = (options["type"], options["queue"], options["to"], options["who"], "command", options["reason"])
        rule = retry_rules.create(*about)
        self.stdout.write(f"Rule {rule.pk} is added: they go to {rule.target}.")

    def _remove(self, options: dict[str, Any]) -> None:
        retry_rules.remove(options["number"], options["who"], "command", options["reason"])
        self.stdout.write(f"Rule {options['number']} is removed.")

    def _list_lease(self, options: dict[str, Any]) -> None:
        with queue_database().read_session() as connection:
            rules = lease_rules.all_rules(connection)
            done, why = (
                lease_rules.done(connection) if rules else {},
                lease_rules.blocking_reason(connection) if rules else "",
            )
        if options["json"]:
            told = [{**each._asdict(), "retried": done[each.id].number if each.id in done else 0} for each in rules]
            return dump(self.stdout, {"rules": told, "blocking_reason": why})
        for each in rules:
            what = f"{each.message_type or lease_rules.ANY}, {' or '.join(each.results)}"
            when = f"{pluralize(each.times, 'time')}, first after {duration(each.wait_seconds)}, by {each.who}"
            self.stdout.write(act_command.line(f"{each.id:>6}", f"{what}: {when}"))
        if why:
            self.stdout.write(act_command.line(f"Nothing is retried now. {why}"))
        self.stdout.write(f"{pluralize(len(rules), 'rule')}.")

    def _add_lease(self, options: dict[str, Any]) -> None:
        results = tuple(each for each in RESULTS if each in options["ended"])
        draft = RuleDraft(options["type"].strip(), results, options["times"], options["wait"])
        number = lease_rules.create(draft, options["who"], "command", options["reason"])
        self.stdout.write(f"Lease rule {number} is added. It is for messages that die from now on.")

    def _remove_lease(self, options: dict[str, Any]) -> None:
        lease_rules.remove(options["number"], options["who"], "command", options["reason"])
        self.stdout.write(f"Lease rule {options['number']} is removed. What waited for it stays dead.")
