"""manage.py endpoint: a new endpoint, from nothing to running."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgqueue_admin.dialects import Connection
from pgqueue_admin.records import endpoints
from pgqueue_admin.records.models import AuditEntry, Endpoint


def test_its_queues_are_made_and_the_supervisor_is_told(
    console_database: str, connect: Callable[[str], Connection], capsys: Any
) -> None:
    call_command("endpoint", "Sales", "--processes", "2", "--as", "ana")
    row = Endpoint.objects.get()
    assert (row.name, row.schema, row.desired_processes, row.ours) == ("Sales", "public", 2, True)
    look = connect(console_database)
    assert look.value('select count(*) from "Sales"') == 0
    assert look.value("select count(*) from error") == 0
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.verb, entry.origin) == ("ana", "create", "command")
    assert capsys.readouterr().out == "Sales receives from public.Sales, 2 wanted.\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["x" * 48], "1 bytes too long"),
        (["Sales", "--processes", "65"], "Processes is a whole number from 0 to 64"),
        (["Sales", "--schema", "nowhere"], "The schema does not exist"),
        (["Taken"], "There is an endpoint named Taken already"),
    ],
)
def test_what_cannot_be_is_said(console_database: str, words: list[str], why: str) -> None:
    Endpoint.objects.create(name="Taken", table="Taken")
    with pytest.raises(CommandError, match=why):
        call_command("endpoint", *words)
    assert Endpoint.objects.count() == 1
    assert endpoints.history("Sales").count() == 0
