"""manage.py worker NAME: one process of an endpoint."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from pgqueue_admin.management.start_requirements import insist_on_own_sessions, insist_on_tables
from pgqueue_admin.workers.processes import endpoint_process


class Command(BaseCommand):
    help = "Runs one process of an endpoint. The supervisor starts these; by hand, to look at one."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help="Its name.")

    def handle(self, **options: Any) -> None:
        insist_on_own_sessions()
        insist_on_tables()
        sys.exit(endpoint_process.run(options["endpoint"]))
