"""manage.py retry_rule: which dead messages are retried to another queue, through the same service as the page."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models import RetryRule
from pgqueue_admin.services import retry_rules

EXIT_CODES = {code: act_command.EXIT_CODES[code] for code in (0, act_command.WRONG, act_command.NO_DATABASE)}


class Command(BaseCommand):
    help = "Lists, adds and removes rules by which dead messages are retried to another queue."
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

    def handle(self, *, verb: str, **options: Any) -> None:
        with act_command.ending(options):
            {"list": self._list, "add": self._add, "remove": self._remove}[verb](options)

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
