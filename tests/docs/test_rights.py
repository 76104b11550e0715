"""Permissions are documented by their names in Django admin, and the documented grants suffice."""

import re
from collections.abc import Callable
from pathlib import Path

from django.contrib.auth.models import Permission

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Operation, database_role
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, runner, selection
from pgqueue_admin.services.permissions import PERMISSIONS, database_lets
from tests.archived_messages import REFUSED
from tests.console.sampled import elsewhere, sample
from tests.waiting import until

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"
RIGHTS_PAGE, ACCESS_PAGE = (
    (REFERENCE / name).read_text(encoding="utf-8") for name in ("rights.md", "database-access.md")
)


def test_each_right_is_told_as_django_admin_lists_it(console_database: str) -> None:
    codes = {code.removeprefix("pgqueue.") for code in PERMISSIONS.values()}
    listed = [str(each) for each in Permission.objects.filter(codename__in=codes)]
    assert len(listed) == len(codes) == 7
    assert [name for name in listed if f"| {name.replace('|', chr(92) + '|')} |" not in RIGHTS_PAGE] == []


def test_the_role_that_is_told_may_do_what_acts_and_ingestion_need(
    archived_console: str, connect: Callable[[str], Connection]
) -> None:
    told = ACCESS_PAGE.partition("## Rights in the queues' database")[2]
    (grants,) = re.findall(r"```sql\n(.*?)```", told.partition("\n## ")[0], re.DOTALL)
    owner = connect(archived_console)
    owner.run("create role pgqueue_queues login password 'narrow'")
    try:
        owner.run(grants)
        columns = "id, expires, headers, body"
        owner.run(f'insert into error ({columns}) select {columns} from "Billing" limit 1')
        with elsewhere("queues", USER="pgqueue_queues", PASSWORD="narrow"):
            _everything()
    finally:
        owner.run("drop owned by pgqueue_queues; drop role pgqueue_queues")


def _everything() -> None:
    until(database_role.current, what="the database was asked")
    assert database_lets("retry") is None
    sample()
    Alerter().run_once()
    for kind, state in (("discard", "dead"), ("restore", "discarded"), ("retry", "dead")):
        operation = selection.freeze(kind, ArchiveFilter(exception=REFUSED, state=state), "ana", "console", "tried")
        lifecycle.start(operation.pk, "ana")
        runner.run(operation.pk)
        operation.refresh_from_db()
        assert (operation.state, operation.done) == (Operation.State.DONE, 88)
    with queue_database().write_session() as connection:
        assert ingest(connection, Address("public", "error")).moved == 1
