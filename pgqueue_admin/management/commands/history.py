"""manage.py history: read finished and dead messages into the history, on Spark."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions, insist_on_tables
from pgqueue_admin.workers.processes import history_process

DRIVER = "This is the driver, as the supervisor keeps one: it goes on until Ctrl-C. To read once: manage.py history run"
HELP = (
    "run: read what is there now, and end; tidy: remove files that are too old (PGQUEUE_HISTORY_RETENTION_DAYS) "
    "or belong to no batch. "
    "Without either it is the driver, which goes on until it is ended."
)


class Command(BaseCommand):
    help = (
        "Reads finished and dead messages into the history (Parquet) and its rollups. The supervisor keeps one that "
        "goes on and does not return: by hand it is `manage.py history run`."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("act", nargs="?", choices=["run", "tidy"], help=HELP)

    def handle(self, *, act: str | None, **options: Any) -> None:
        if act != "tidy":
            insist_on_own_sessions("history")
            insist_on_tables()
        if act == "run":
            self.stdout.write(f"Batches read and days recomputed: {history_process.once()}.")
            for why in history_process.held_back():
                self.stderr.write(why)
        elif act == "tidy":
            old, orphaned = history_process.tidy()
            self.stdout.write(f"{old} files were too old, {orphaned} belonged to no batch.")
        else:
            if self.stdout.isatty():
                self.stdout.write(DRIVER)
            history_process.run()
