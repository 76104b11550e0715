"""``manage.py migrate``: Django's command, in the console's own schema."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from pgqueue_admin.models import schema


class Command(migrate.Command):
    help = "Migrates the console's own tables, on DATABASE_URL. Arguments are Django's."

    def handle(self, *args: Any, **options: Any) -> None:
        if options["plan"] or options["check_unapplied"] or options["database"] != "default":
            super().handle(*args, **options)
            return
        try:
            with schema.for_migrating():
                super().handle(*args, **options)
        except schema.NotReady as error:
            raise CommandError(str(error)) from error
