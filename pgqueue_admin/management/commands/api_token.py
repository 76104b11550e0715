"""manage.py api_token create|list|revoke: tokens with which remote programs post marks and read metrics."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.management.act_command import caller
from pgqueue_admin.models import ApiToken, database_clock
from pgqueue_admin.models.api_token import RIGHTS
from pgqueue_admin.services import api_tokens
from pgqueue_admin.services.api_tokens import TokenRefused

MOST_DAYS = 3_650


class Command(BaseCommand):
    help = "Makes, lists and revokes API tokens. A token is shown once, when it is made."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        making = verbs.add_parser("create", help="Makes a token and prints it.")
        making.add_argument("name", help="The token's name, such as ci. Marks and the audit show it.")
        may = "; ".join(f"{right}: {said}" for right, said in RIGHTS.items())
        making.add_argument("--may", action="append", required=True, choices=RIGHTS, help=f"{may}. Repeatable.")
        making.add_argument("--days", type=int, default=0, help="Days until it ends. Default: until it is revoked.")
        verbs.add_parser("list", help="Names, rights and when each was used; never the tokens.")
        verbs.add_parser("revoke", help="Refuses a token from now on.").add_argument("name")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            {"create": self._create, "list": self._list, "revoke": self._revoke}[verb](options)
        except TokenRefused as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        days = options["days"]
        if not 0 <= days <= MOST_DAYS:
            raise CommandError(f"--days: 1 to {MOST_DAYS:,}. No token was made.")
        kept_for = timedelta(days=days) if days else None
        self.stdout.write(api_tokens.create(options["name"], options["may"], caller(), "command", kept_for))

    def _list(self, options: dict[str, Any]) -> None:
        now = database_clock.now()
        for token in ApiToken.objects.all():
            used = f"used {token.used_at:%Y-%m-%d %H:%M} UTC" if token.used_at else "never used"
            self.stdout.write(f"{token.name}  {', '.join(token.rights)}  {token.standing(now)}  {used}")

    def _revoke(self, options: dict[str, Any]) -> None:
        api_tokens.revoke(options["name"], caller(), "command")
        self.stdout.write(f"{options['name']} is revoked.")
