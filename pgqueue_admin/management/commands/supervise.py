"""manage.py supervise: keep this host's processes in their desired state."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pgqueue_admin.workers.supervisor import init_process, supervisor
from pgqueue_admin.workers.supervisor.role import singletons

ELSEWHERE = "alerter, expirer, history, ingester or sampler: runs elsewhere. Repeatable."


class Command(BaseCommand):
    help = "Runs endpoints, sampler, ingester, expirer, alerter and history as the console wants them. One per host."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = sorted({role.key.kind for role in singletons()})
        parser.add_argument("--without", action="append", default=[], choices=kinds, metavar="KIND", help=ELSEWHERE)

    def handle(self, **options: Any) -> None:
        init_process.stay_behind()
        if refusal := supervisor.run(frozenset(options["without"])):
            raise CommandError(refusal)
