"""manage.py crossings: messages whose arrival in another database is unknown, and a person's decision on them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import crossings as crossing_words
from pgqueue_admin.management.act_command import caller
from pgqueue_admin.management.database_errors import describe
from pgqueue_admin.services.operations import crossings
from pgqueue_admin.services.operations.crossing_decision import decide
from pgqueue_admin.services.operations.errors import OperationRefused


class Command(BaseCommand):
    help = (
        "Lists messages whose arrival in another database is unknown. Look there for "
        "the rows that are listed, and say which."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="Each with the rows to look for.")
        for verb, words in crossing_words.DECISIONS.items():
            one = verbs.add_parser(verb, help=words)
            one.add_argument("number", type=int, help="The number that `list` shows.")
            one.add_argument("--reason", required=True, help="What you saw there; kept in the audit.")
            one.add_argument("--as", dest="who", default=caller(), help="Whose name is kept. Default: yours.")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            if verb == "list":
                self._list()
            else:
                self._decide(verb == "arrived", **options)
        except DatabaseError as error:
            raise CommandError(describe(error)) from error
        except OperationRefused as error:
            raise CommandError(str(error)) from error

    def _list(self) -> None:
        for each in crossings.undecided():
            asked = crossing_words.asked(each.number, each.crossing.takes_in, each.crossing.alias)
            self.stdout.write(f"{each.crossing.id}  {asked}")
            self.stdout.write(f"    {each.crossing.begun_at:%Y-%m-%d %H:%M:%S} UTC. {each.crossing.not_known}")
            for queue, ids in each.rows.items():
                self.stdout.write(f"    {queue}: {', '.join(ids)}")

    def _decide(self, arrived: bool, *, number: int, who: str, reason: str, **options: Any) -> None:
        done = decide(number, arrived, who, "command", reason)
        self.stdout.write(crossing_words.decided(done, arrived))
