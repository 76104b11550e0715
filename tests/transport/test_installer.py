"""Tables that we create equal those of the original's endpoints (T1; wire sheet 1)."""

import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint, installer
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.addresses import Addressing
from tests.transport.conftest import QUICK
from tests.transport.table_catalog import catalog
from tests.waiting import until

LONGEST = "Very.Long.Queue.Name.That.Is.Exactly.Fifty.Five.Bytes_X"
SPELLED = 'Zażółć "gęślą" queue'


@pytest.mark.parametrize("name", ["Mailer", "Shop.Web.node-1", "Shipping.eu-1", LONGEST, SPELLED])
def test_a_queue_table_equals_a_recorded_one(name, connection, recording, connect):
    address = Address("public", name)
    TableQueue(postgresql(), address).create(connection)
    assert catalog(connection, address) == catalog(connect(recording), address)


@pytest.mark.parametrize("name", ["Mailer", "Shop.Web"])
def test_a_delayed_table_equals_a_recorded_one(name, connection, recording, connect):
    delayed = DelayedTable(postgresql(), Address("public", name))
    delayed.create(connection)
    assert catalog(connection, delayed.address) == catalog(connect(recording), delayed.address)


def test_the_subscription_table_equals_the_recorded_one(connection, recording, connect):
    subscriptions = Subscriptions(Addressing(postgresql(), "public"))
    subscriptions.create(connection)
    assert catalog(connection, subscriptions.address) == catalog(connect(recording), subscriptions.address)


def test_tables_are_made_in_the_order_of_the_original(make_endpoint, connection):
    """Wire sheet 1.5."""
    make_endpoint("Sales", settings=replace(QUICK, audit_queue="audit"), instance="n1")
    made = connection.all("""select relname from pg_class
        where relkind = 'r' and relnamespace = 'public'::regnamespace order by oid""")
    assert [table.relname for table in made] == [
        "SubscriptionRouting", "error", "audit", "Sales", "Sales.n1", "Sales.Delayed",
    ]  # fmt: skip


def test_creating_twice_changes_nothing(connection):
    queue = TableQueue(postgresql(), Address("public", "Sales"))
    queue.create(connection)
    before = catalog(connection, queue.address)
    queue.create(connection)
    assert catalog(connection, queue.address) == before


def test_role_without_create_uses_existing_tables(endpoint, connection, connect, database):
    """In production, endpoints have no more rights than they need."""
    connection.run("create role only_runs")
    connection.run("revoke create on schema public from public")
    session = connect(database)
    session.run("set role only_runs")
    tables = endpoint.subscriptions, endpoint.queues, endpoint.delayed
    try:
        installer.create(session, *tables)
        connection.run('drop table "Sales.Delayed"')
        with pytest.raises(NotPermitted):
            installer.create(session, *tables)
    finally:
        session.run("reset role")
        connection.run("drop role only_runs")


def test_many_may_create_at_once(database, connect):
    sessions = [connect(database) for _ in range(8)]
    queues = [TableQueue(postgresql(), Address("public", f"Queue {number}")) for number in range(10)]
    barrier = threading.Barrier(len(sessions))
    errors = []

    def create(session):
        try:
            for queue in queues:
                barrier.wait(60)
                queue.create(session)
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=create, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [list(queue.faults(sessions[0])) for queue in queues] == [[]] * len(queues)


def test_an_endpoint_creates_what_it_needs(endpoint, connection):
    tables = connection.all("select tablename from pg_tables where schemaname = 'public' order by 1")
    assert [table.tablename for table in tables] == ["Sales", "Sales.Delayed", "SubscriptionRouting", "error"]


# Two sessions create a table at once: the second waits for the first and succeeds either way (T1).
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
    """Run it in a thread; return the thread and the list of its errors."""
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
    """With their shared tables; the first is held up halfway."""
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
