"""A process that is killed in the middle of an act on two databases."""

import os

from tests.billing import Billing
from tests.killed_process import ROOT, run_killed

# The product's own code; only the moment of the kill is chosen here.
KILLED = """
import os, signal, sys
import django
django.setup()
from pgqueue_admin.archive import crossing_back, crossing_in, crossing_taken_back, crossings as rows
from pgqueue_admin.services.operations import crossings, runner

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(does):
    def both(*arguments):
        does(*arguments)
        die()
    return both

if sys.argv[2] == "before the intent":
    rows.put_back = rows.put_typed = rows.take_in = rows.take_back = rows.move = die
elif sys.argv[2] == "after the intent":
    crossings._carry = die
elif sys.argv[2] == "before the copies":
    crossing_in._copied = die
elif sys.argv[2] == "after the copies":
    crossing_in._copied = then_die(crossing_in._copied)
elif sys.argv[2] == "before the mark":
    rows.leave = die
elif sys.argv[2] == "before the commit there":
    rows.leave = then_die(rows.leave)
elif sys.argv[2] == "after the commit there":
    crossings._finish = die
elif sys.argv[2] == "within the end":
    crossing_back.finish = then_die(crossing_back.finish)
    crossing_in.finish = then_die(crossing_in.finish)
    crossing_taken_back.finish = then_die(crossing_taken_back.finish)
elif sys.argv[2] == "after the end":
    crossings._forget = die
runner.run_chunk(int(sys.argv[1]), 100)
"""
LAST = "runner.run_chunk(int(sys.argv[1]), 100)\n"  # the act itself, in the script


def run_and_kill(
    about: str, dsn: str, billing: Billing | str, where: str, does: str = LAST, schema: str = "public"
) -> None:
    """``about``: what the act works on, the script's first argument. ``billing``: a database, or its DSN and schema."""
    known = environment(dsn, billing, schema)
    run_killed(KILLED.replace(LAST, does), (about, where), known, dsn, known["QUEUES_URL_BILLING"])


def environment(dsn: str, billing: Billing | str, schema: str = "public") -> dict[str, str]:
    there, schema = (billing, schema) if isinstance(billing, str) else (billing.dsn, billing.schema)
    return {
        "DATABASE_URL": dsn, "QUEUES_URL": dsn, "PGQUEUE_QUEUE_SCHEMAS": "public,Legacy", "PATH": os.environ["PATH"],
        "QUEUES_URL_BILLING": there, "PGQUEUE_WRITABLE_BILLING": "yes", "PYTHONPATH": str(ROOT),
        "PGQUEUE_QUEUE_SCHEMAS_BILLING": schema, "PGQUEUE_STATE_DIR": "/nonexistent/var",
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings",
    }  # fmt: skip
