"""Migration 0027: an outbox in use keeps its isolation level; others get the engine's default."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from pgqueue_admin.models import Endpoint

BEFORE = ("pgqueue", "0026_outbox_first_seen")


@pytest.mark.usefixtures("console_database")
def test_only_what_nobody_can_have_meant_becomes_the_default() -> None:
    call_command("migrate", *BEFORE, verbosity=0)
    made = MigrationExecutor(connection).loader.project_state(BEFORE).apps.get_model("pgqueue", "Endpoint")
    for name, outbox, isolation in (
        ("runs", "optimistic", "read_committed"),
        ("off", "off", "read_committed"),
        ("chosen", "off", "serializable"),
    ):
        made.objects.create(name=name, table=name, outbox=outbox, outbox_isolation=isolation)
    call_command("migrate", verbosity=0)
    stands = dict(Endpoint.objects.values_list("name", "outbox_isolation"))
    assert stands == {"runs": "read_committed", "off": "default", "chosen": "serializable"}
    assert Endpoint(name="new").outbox_isolation == "default"
