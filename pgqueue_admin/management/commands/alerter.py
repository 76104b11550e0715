"""``manage.py alerter``: watches for dead messages and mails. The supervisor keeps one running."""

import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.management.start_requirements import insist_on_own_sessions, insist_on_tables


class Command(BaseCommand):
    help = "Evaluates warnings every few seconds and mails them. The supervisor keeps one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="Evaluate and send once, then end.")

    def handle(self, *args: Any, **options: Any) -> None:
        insist_on_own_sessions()
        insist_on_tables()
        alerter = Alerter()
        if options["once"]:
            return alerter.run_once()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, alerter.stop)
        return alerter.run()
