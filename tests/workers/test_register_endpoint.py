"""manage.py endpoint: a new endpoint, from declaration to running."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint
from pgqueue_admin.services import endpoint_change
from pgqueue_admin.workers.processes import registry
from pgqueue_admin.workers.processes.endpoint_settings import of_row
from pgqueue_admin.workers.processes.registry import DeclaredLeaseEndpoint


def test_its_queues_are_made_and_the_supervisor_is_told(
    console_database: str, connect: Callable[[str], Connection], capsys: Any
) -> None:
    call_command("endpoint", "Sales", "--new", "--processes", "2", "--as", "ana")
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
def test_invalid_endpoint_is_refused_and_creates_nothing(
    console_database: str, connect: Callable[[str], Connection], words: list[str], why: str
) -> None:
    Endpoint.objects.create(name="Taken", table="Taken")
    look = connect(console_database)
    before = look.value(TABLES, ["%"])
    with pytest.raises(CommandError, match=why):
        call_command("endpoint", "--new", *words)
    assert Endpoint.objects.count() == 1
    assert endpoint_change.history("Sales").count() == 0
    assert look.value(TABLES, ["%"]) == before


TABLES = "select count(*) from pg_tables where schemaname = 'public' and tablename like %s"


@pytest.mark.parametrize(
    ("name", "nearest"), [("Slaes", " Nearest: Sales."), ("sales", " Nearest: Sales."), ("Warehouse", "")]
)
def test_a_slip_of_the_keyboard_makes_nothing(
    console_database: str, connect: Callable[[str], Connection], name: str, nearest: str
) -> None:
    look = connect(console_database)
    look.run(postgresql().queue.create(table=Address("public", "Sales")))
    with pytest.raises(CommandError) as refused:
        call_command("endpoint", name)
    assert str(refused.value) == (
        f"Nothing was made. No application of PGQUEUE_HANDLER_APPS declares {name}, "
        f"and public has no queue of that name."
        f"{nearest} With --new its queues are made all the same."
    )
    assert look.value(TABLES, [f"{name}%"]) == 0
    assert not Endpoint.objects.exists()


def test_endpoint_with_a_queue_or_handlers_needs_no_new_option(
    console_database: str, connect: Callable[[str], Connection]
) -> None:
    connect(console_database).run(postgresql().queue.create(table=Address("public", "Foreign")))
    call_command("endpoint", "Foreign")
    registry.endpoint("Declared by a test")
    call_command("endpoint", "Declared by a test")
    assert Endpoint.objects.count() == 2


def test_an_endpoint_of_another_schema_may_share_the_subscriptions(
    console_database: str, connect: Callable[[str], Connection]
) -> None:
    """Its own table would hide its events from all others, and theirs from it."""
    look = connect(console_database)
    look.run('create schema "Legacy"')
    look.run(postgresql().subscription.create(table=Address("public", "SubscriptionRouting")))
    shared = '"public"."SubscriptionRouting"'
    call_command("endpoint", "Invoicing", "--new", "--schema", "Legacy", "--subscription-table", shared)
    where = "select schemaname from pg_tables where tablename = 'SubscriptionRouting'"
    assert [row.schemaname for row in look.all(where)] == ["public"]
    row = Endpoint.objects.get()
    assert of_row(row).subscription_table == row.subscription_table == shared


def test_instance_queue_and_bodystring_columns_are_created_on_request(
    console_database: str, connect: Callable[[str], Connection]
) -> None:
    registry.endpoint("Asks").instance = "node-1"
    call_command("endpoint", "Asks", "--bodystring")
    readable = connect(console_database).all("""select attrelid::regclass::text as name from pg_attribute
        where attname = 'bodystring' and attrelid::regclass::text ~ 'Asks|error' order by 1""")
    assert [table.name for table in readable] == ['"Asks"', '"Asks.Delayed"', '"Asks.node-1"', "error"]


@pytest.fixture
def thumbs(monkeypatch: pytest.MonkeyPatch) -> DeclaredLeaseEndpoint:
    monkeypatch.setattr(registry, "_declared", {})
    return registry.lease_endpoint("Thumbs")


def test_endpoint_declared_for_the_lease_queue_works_there(
    console_database: str, thumbs: DeclaredLeaseEndpoint, capsys: Any
) -> None:
    """L11: with any number of processes. A second one would reject messages that the first has handlers for."""
    call_command("endpoint", "Thumbs", "--processes", "2", "--as", "ana")
    row = Endpoint.objects.get()
    assert (row.kind, row.schema, row.table, row.desired_processes) == ("lease", "messages", "message", 2)
    assert capsys.readouterr().out == "Thumbs receives from messages.message, 2 wanted.\n"
    assert AuditEntry.objects.get().verb == "create"
    registry.lease_endpoint("Icons")
    with pytest.raises(CommandError, match="Thumbs works on the lease queue, and takes messages of every kind"):
        call_command("endpoint", "Icons")
    with pytest.raises(IntegrityError, match="one_lease_endpoint"), transaction.atomic():
        Endpoint.objects.create(name="Icons", kind="lease", table="message")
    with pytest.raises(ValueError, match="declared as an endpoint of the kind lease already"):
        registry.endpoint("Thumbs")


@pytest.mark.parametrize("option", [("--error-queue", "error"), ("--bodystring",)])
def test_options_that_the_lease_queue_lacks_are_refused(
    console_database: str, thumbs: DeclaredLeaseEndpoint, option: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError, match="works on the lease queue, which has no "):
        call_command("endpoint", "Thumbs", *option)
    assert not Endpoint.objects.exists()


def test_without_the_tables_of_the_lease_queue_nothing_is_made(
    console_database: str, connect: Callable[[str], Connection], thumbs: DeclaredLeaseEndpoint
) -> None:
    connect(console_database).run("drop table messages.notify_round")
    with pytest.raises(CommandError, match=r"Nothing was made\. .* run manage\.py engine_schema"):
        call_command("endpoint", "Thumbs")
    assert not Endpoint.objects.exists()
