"""``manage.py prepare``: prepare the embedded databases before the console runs, and check those given by URL."""

from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import OperationalError

from pgqueue_admin.management.start_requirements import insist_on_own_sessions
from pgqueue_admin.services.initial_user import first_login


class Command(BaseCommand):
    help = "Prepares the embedded databases. A database given by URL is only checked, never written."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        insist_on_own_sessions()
        ours = settings.PGQUEUE["OURS"]
        if ours["console"]:
            call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
        else:
            self._look_at_the_console_tables()
        if ours["queues"]:
            call_command("engine_schema", verbosity=0)
            call_command("seed")
        if ours["console"]:
            self._tell_login()

    def _look_at_the_console_tables(self) -> None:
        try:
            executor = MigrationExecutor(connection)
        except OperationalError as error:
            raise CommandError(f"The console's database, DATABASE_URL, does not answer. {error}") from error
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError(
                "The console's own tables are missing on DATABASE_URL, or older than this version. Nothing is made on "
                f"a database given by URL unasked: run `{_typed('migrate')}`, then start again. "
                f"A login: `{_typed('createsuperuser')}`."
            )

    @transaction.atomic  # print, then commit: nobody could use a login that was never printed
    def _tell_login(self) -> None:
        if login := first_login():
            self.stdout.write(f"\n  Login: {login.name}  password: {login.password}  (shown this once)\n")
        else:
            self.stdout.write(f"  Login: as before. Forgotten: {_typed('changepassword admin')}")


def _typed(words: str) -> str:
    """Format a command as it is typed here."""
    return f"{settings.PGQUEUE['COMMAND_LINE']} {words}"
