"""Two sessions create one table at the same moment: the second waits for the first, and is content either way (T1)."""

import threading
from contextlib import suppress

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.addresses import Addressing
from tests.transport.table_catalog import catalog
from tests.waiting import until

SALES = Address("public", "Sales")
KINDS = {
    "queue": lambda: TableQueue(postgresql(), SALES),
    "delayed": lambda: DelayedTable(postgresql(), SALES),
    "subscriptions": lambda: Subscriptions(Addressing(postgresql(), "public")),
}
WAITING = "select count(*) from pg_locks where not granted"
PATIENT = 60


@pytest.fixture
def sessions(database, connect):
    return connect(database), connect(database)


def in_thread(act, *arguments):
    """Start it; give the thread and what it raised."""
    raised = []

    def run():
        try:
            act(*arguments)
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("commits", [True, False])
def test_the_second_waits_for_the_first(kind, commits, sessions, connection):
    table, (first, second) = KINDS[kind](), sessions
    with suppress(ZeroDivisionError), first.transaction():
        table.create(first)
        thread, raised = in_thread(table.create, second)
        until(lambda: connection.value(WAITING), PATIENT)
        if not commits:
            raise ZeroDivisionError
    thread.join(PATIENT)
    assert raised == []
    made = catalog(connection, table.address)
    table.create(connection)
    assert catalog(connection, table.address) == made


def test_two_endpoints_are_set_up_at_once(database, sessions, connection):
    """Their shared tables too; the first is held up half way."""
    endpoints = [Endpoint(name, database) for name in ("Sales", "Billing")]
    with sessions[0].transaction():
        Subscriptions(Addressing(postgresql(), "public")).create(sessions[0])
        started = [in_thread(endpoint.create_queues) for endpoint in endpoints]
        until(lambda: connection.value(WAITING) >= 2, PATIENT)
    for thread, _ in started:
        thread.join(PATIENT)
    assert [raised for _, raised in started] == [[], []]
    tables = connection.all("select tablename from pg_tables where schemaname = 'public' order by 1")
    assert [table.tablename for table in tables] == [
        "Billing",
        "Billing.Delayed",
        "Sales",
        "Sales.Delayed",
        "SubscriptionRouting",
        "error",
    ]
    for endpoint in endpoints:
        endpoint.stop()
