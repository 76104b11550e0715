"""A process killed between the queues' commit and the console's row (DESIGN: two aliases, one act)."""

import os

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations import lifecycle, runner, selection
from tests.archived_messages import BILLING, REFUSED, archived, dead, events_of, number_in
from tests.killed_process import run_killed

# The process runs the product's own code; only the moment of the kill is chosen here.
KILLED = """
import os, signal, sys
import django
django.setup()
from pgqueue_admin.services.operations import runner

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(runner, sys.argv[2], die)
runner.run_chunk(int(sys.argv[1]), 30)
"""


def run_and_kill(operation: Operation, dsn: str, where: str, schemas: str = "public,Legacy") -> None:
    url = {"DATABASE_URL": dsn, "QUEUES_URL": dsn, "PGQUEUE_QUEUE_SCHEMAS": schemas, "PATH": os.environ["PATH"]}
    environment = {
        **url,
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings",
        "PGQUEUE_STATE_DIR": "/nonexistent/var",
    }
    run_killed(KILLED, (str(operation.pk), where), environment, dsn)


@pytest.mark.parametrize(
    ("where", "done_by_the_killed"),
    [("recount", 30), ("record", 0)],  # after the commit on queues; inside that transaction
)
def test_nothing_is_lost_or_done_twice(archived_console: str, ana: User, where: str, done_by_the_killed: int) -> None:
    before = number_in(BILLING)
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    run_and_kill(operation, archived_console, where)

    operation.refresh_from_db()
    assert (operation.state, operation.done) == (Operation.State.RUNNING, 0), "the console's row knows nothing yet"
    assert number_in(BILLING) == before + done_by_the_killed
    assert events_of(operation.pk) == done_by_the_killed

    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.skipped) == (Operation.State.DONE, 88, 0)
    assert number_in(BILLING) == before + 88
    assert events_of(operation.pk) == 88
    assert archived(dead(state="retried", exception=REFUSED)[0].id).operation == operation.pk
