"""One transaction over several databases: all or nothing, whatever fails in between (O6, O7)."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.coordinator import Coordinator
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.errors import NotEnlisted, QueueUnfit
from pgqueue_admin.transport.settings import SettingsRefused
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint, Shops, charging
from tests.outbox.test_receive import ANOTHER_ID, charges, records, sold
from tests.outbox.test_upkeep import upkeep_of
from tests.own_server import own_server
from tests.transport.recording_observer import Spy, rows
from tests.waiting import until

PREPARED = "select gid from pg_prepared_xacts where database = current_database()"
DECISIONS = """select count(*) from "Billing_OutboxData_Decision" where "Id" <> 'coordinator'"""


def coordinator_of(endpoint: Endpoint) -> Coordinator:
    assert isinstance(endpoint.outbox, EndpointOutbox)
    assert endpoint.outbox.coordinator
    return endpoint.outbox.coordinator


def all_charges(*dsns: str) -> list[list[int]]:
    found = []
    for dsn in dsns:
        with dialect_for(dsn).connect(dsn, for_handlers=True) as session:
            found.append(charges(session))
    return found


def prepared(shops: Shops) -> list[int]:
    """Number of prepared transactions in each database."""
    counts = []
    for dsn in shops.values():
        with dialect_for(dsn).connect(dsn) as session:
            counts.append(len(session.all("xa recover" if dsn.startswith("mysql") else PREPARED)))
    return counts


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_copies_of_each_message_have_one_effect_in_each_database(
    make: MakeEndpoint, database: str, connection: Connection, connect: Any, shops: Shops, concurrency: Any
) -> None:
    """Fifty messages, delivered three times each, four at once; isolation is serializable by default."""
    billing = make(outbox=Outbox(databases=shops, concurrency=concurrency))
    charging(billing, enlisted=shops)
    billing.send_many("Billing", range(50), type=CHARGE)
    connection.run(f'{ANOTHER_ID} union all select gen_random_uuid(), headers, body from "Billing" order by 2')
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert all_charges(database, *shops.values()) == [list(range(50))] * 3
    assert sold(database) == list(range(50))
    assert records(connection) == [(True, [])] * 50
    assert prepared(shops) == [0, 0]
    assert rows(database, "error") == []


def test_decisions_are_forgotten_once_nothing_is_prepared(
    make: MakeEndpoint, database: str, connection: Connection, shops: Shops
) -> None:
    billing = make(outbox=Outbox(databases=shops))
    charging(billing, enlisted=shops)
    billing.send_many("Billing", range(3), type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    billing.stop()
    upkeep_of(billing).run_once()
    assert connection.value(DECISIONS) == 0


def test_handler_that_enlists_nothing_writes_no_decision(
    make: MakeEndpoint, database: str, connection: Connection, shops: Shops
) -> None:
    billing = make(outbox=Outbox(databases=shops))
    charging(billing)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert (charges(connection), connection.value(DECISIONS)) == ([1], 0)


@pytest.mark.parametrize(("isolation", "said"), [(None, "serializable"), ("read_committed", "read committed")])
def test_each_database_has_the_isolation_of_the_outbox(
    make: MakeEndpoint, database: str, shops: Shops, isolation: Any, said: str
) -> None:
    billing, seen = make(outbox=Outbox(databases=shops, isolation=isolation)), list[str]()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        for session in [context.connection, *map(context.enlist, shops)]:
            seen.append(session.value("show transaction_isolation"))

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert seen == [said] * 3


def fails(context: Any, name: str) -> None:
    raise ValueError("declined")


def commits(context: Any, name: str) -> None:
    context.enlist(name).raw.execute("commit")


def begins_another(context: Any, name: str) -> None:
    context.enlist(name).raw.execute("commit; begin")


def ignores_a_failure(context: Any, name: str) -> None:
    try:
        context.enlist(name).run("select 1/0")
    except Exception:
        logging.getLogger("tests").info("ignored")


def notifies(context: Any, name: str) -> None:
    context.enlist(name).run("notify somebody")


def asks_for_another(context: Any, name: str) -> None:
    context.enlist("elsewhere")


@pytest.mark.parametrize(
    ("fault", "said", "kept"),
    [
        (fails, "declined", 0),
        (commits, "ended the transaction by commit", 1),
        (begins_another, "", 1),
        (ignores_a_failure, "", 0),
        (notifies, "A transaction that executed NOTIFY or LISTEN cannot be prepared", 0),
        (asks_for_another, "the endpoint has no database of that name; there are ledger, stock", 0),
    ],
)
def test_a_message_that_fails_leaves_nothing(
    make: MakeEndpoint,
    database: str,
    connection: Connection,
    connect: Any,
    shops: Shops,
    spy: Spy,
    fault: Callable[[Any, str], None],
    said: str,
    kept: int,
) -> None:
    """The handler writes to all databases, then fails. ``kept``: rows that it committed by itself in ledger stay."""
    billing = make(outbox=Outbox(databases=shops), immediate_retries=0)

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run("insert into public.charges (number) values (%s)", [number])
        for name in shops:
            context.enlist(name).run("insert into charges (number) values (%s)", [number])
        fault(context, "ledger")

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert (charges(connection), charges(connect(shops["stock"])), records(connection)) == ([], [], [])
    assert len(charges(connect(shops["ledger"]))) == kept
    assert prepared(shops) == [0, 0]
    assert said in str(spy.errors[0])


def test_refused_outbox_commit_rolls_back_prepared_branches(
    make: MakeEndpoint, database: str, connection: Connection, connect: Any, shops: Shops
) -> None:
    connection.run("alter table charges add unique (number) deferrable initially deferred")
    connection.run("insert into charges (number) values (1)")
    billing = make(outbox=Outbox(databases=shops), immediate_retries=0)
    charging(billing, enlisted=shops)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert all_charges(database, *shops.values()) == [[1], [], []]
    assert prepared(shops) == [0, 0]


def test_a_trigger_that_drops_decisions_lets_nothing_be_prepared(
    make: MakeEndpoint, database: str, connection: Connection, connect: Any, shops: Shops
) -> None:
    """Otherwise the outbox would commit and the others roll back."""
    billing = make(outbox=Outbox(databases=shops), immediate_retries=0)
    charging(billing, enlisted=shops)
    connection.run("create function drops() returns trigger language plpgsql as 'begin return null; end'")
    connection.run(
        'create trigger drops before insert on "Billing_OutboxData_Decision" for each row execute function drops()'
    )
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert all_charges(database, *shops.values()) == [[], [], []]


def test_without_databases_nothing_can_be_enlisted(make: MakeEndpoint, database: str, spy: Spy) -> None:
    billing = make()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.enlist("stock")

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert isinstance(spy.errors[0], NotEnlisted)
    assert "outbox=Outbox(databases={…})" in str(spy.errors[0])


@pytest.mark.parametrize(
    ("databases", "outbox", "said"),
    [
        ({"Stock": "postgresql://host/db"}, {}, "databases of the outbox has 'Stock': a name is of"),
        ({"stock": "oracle://host/db"}, {}, "databases of the outbox has stock: No dialect for oracle://"),
        ({"stock": "postgresql://host/db"}, {"dsn": "postgresql://host/db"}, "stock, which is its own"),
        ({"stock": "postgresql://host/db"}, {"isolation": "chaos"}, "isolation of the outbox is 'chaos'"),
        ({"stock": "postgresql://host/db"}, {"dsn": "mssql://host/shop"}, "sqlserver cannot decide over others"),
    ],
)
def test_invalid_two_phase_settings_are_refused_by_name(databases: Any, outbox: Any, said: str) -> None:
    with pytest.raises(SettingsRefused, match=said):
        Endpoint("Billing", "", settings=replace(SETTINGS, outbox=Outbox(databases=databases, **outbox)))


def test_a_server_that_prepares_nothing_is_said_at_start(make: MakeEndpoint) -> None:
    with own_server({"fsync": "off", "max_prepared_transactions": 0}) as server:
        billing = make(outbox=Outbox(databases={"stock": server.dsn()}))
        with pytest.raises(QueueUnfit, match=r"stock, enlisted by the outbox: .*max_prepared_transactions is 0"):
            billing.start()


def test_a_database_that_is_down_is_waited_for(
    make: MakeEndpoint, database: str, connection: Connection, spy: Spy
) -> None:
    """The message stays in the queue, and no failure is counted."""
    with own_server({"fsync": "off"}) as server:
        server.stop()
        billing = make(outbox=Outbox(databases={"stock": server.dsn()}))
        charging(billing, enlisted=["stock"])
        billing.send("Billing", 1, type=CHARGE)
        billing.start()
        until(lambda: spy.counts["received"] > 0)
        server.start()
        with postgresql().connect(server.dsn(), for_handlers=True) as there:
            there.run("create table charges (number integer)")
            until(lambda: charges(there) == [1])
        until(lambda: not rows(database, "Billing"))
        billing.stop()
    assert spy.counts["failed"] == 0


# --- in doubt: who ends it, and how


class InDoubt:
    """A worker between its prepares and its commit."""

    def __init__(self, coordinator: Coordinator, storage: Connection, sessions: dict[str, Connection]):
        self.id = uuid4().hex
        self.storage = storage
        storage.raw.execute("begin")
        storage.run(*coordinator.deciding(self.id, list(sessions)))
        for name, session in sessions.items():
            coordinator.databases[name].begin(session, self.id)
            session.run("insert into charges (number) values (7)")
            coordinator.databases[name].prepare(session, self.id)


@pytest.fixture
def billing(make: MakeEndpoint, shops: Shops) -> Endpoint:
    return make(outbox=Outbox(databases=shops))


@pytest.fixture
def in_doubt(billing: Endpoint, database: str, connect: Any, shops: Shops) -> InDoubt:
    sessions = {name: connect(dsn) for name, dsn in shops.items()}
    return InDoubt(coordinator_of(billing), connect(database), sessions)


def test_recovery_leaves_transactions_that_may_still_commit(
    billing: Endpoint, in_doubt: InDoubt, connection: Connection, connect: Any, shops: Shops
) -> None:
    """However often recovery looks: there is no timeout. Once the outbox has committed, all databases do."""
    coordinator = coordinator_of(billing)
    assert coordinator.recover(connection), "something is left"
    assert coordinator.recover(connection)
    assert prepared(shops) == [1, 1]
    in_doubt.storage.raw.execute("commit")
    assert not coordinator.recover(connection)
    assert prepared(shops) == [0, 0]
    assert all_charges(*shops.values()) == [[7], [7]]


def test_recovery_rolls_back_transactions_without_a_decision(
    billing: Endpoint, in_doubt: InDoubt, connection: Connection, connect: Any, shops: Shops
) -> None:
    in_doubt.storage.abort()
    until(lambda: not coordinator_of(billing).recover(connection))
    assert prepared(shops) == [0, 0]
    assert all_charges(*shops.values()) == [[], []]


def test_starting_process_recovers_at_once_without_the_lead(billing: Endpoint, in_doubt: InDoubt, shops: Shops) -> None:
    """The leader has just looked and will look again in a minute; the locks would be held that long."""
    leader, stand_in = upkeep_of(billing), upkeep_of(billing)
    leader.run_once()
    assert prepared(shops) == [1, 1]
    in_doubt.storage.raw.execute("commit")
    stand_in.run_once()
    assert prepared(shops) == [0, 0]
    assert all_charges(*shops.values()) == [[7], [7]]
    assert stand_in._pause() > leader._pause(), "it is done with it"


def test_two_that_recover_at_once_end_each_as_it_was_decided(
    billing: Endpoint, database: str, connect: Any, shops: Shops
) -> None:
    """Half of the prepared transactions are decided to commit, the others can never be."""
    coordinator = coordinator_of(billing)
    for number in range(6):
        sessions = {name: connect(dsn) for name, dsn in shops.items()}
        storage = connect(database)
        storage.raw.execute("begin")
        id = uuid4().hex
        storage.run(*coordinator.deciding(id, list(sessions)))
        for name, session in sessions.items():
            coordinator.databases[name].begin(session, id)
            session.run("insert into charges (number) values (%s)", [number])
            coordinator.databases[name].prepare(session, id)
        storage.raw.execute("commit" if number % 2 else "rollback")
        for each in (storage, *sessions.values()):
            each.close()
    several = [threading.Thread(target=coordinator.recover, args=[connect(database)]) for _ in range(3)]
    for each in several:
        each.start()
    for each in several:
        each.join(60)
    until(lambda: not coordinator.recover(connect(database)))
    assert prepared(shops) == [0, 0]
    assert all_charges(*shops.values()) == [[1, 3, 5]] * 2
    assert connect(database).value(DECISIONS) == 0


def test_transactions_of_another_coordinator_are_left_alone(
    billing: Endpoint, in_doubt: InDoubt, connection: Connection, connect: Any, shops: Shops, make: MakeEndpoint
) -> None:
    """An endpoint with another outbox enlists the same databases."""
    other = make("Shipping", outbox=Outbox(databases=shops))
    in_doubt.storage.raw.execute("rollback")
    assert not coordinator_of(other).recover(connection)
    assert prepared(shops) == [1, 1]


def test_transaction_prepared_by_another_role_keeps_its_decision(
    make: MakeEndpoint, billing: Endpoint, in_doubt: InDoubt, connection: Connection, shops: Shops
) -> None:
    """Until a role with the rights has ended it."""
    in_doubt.storage.raw.execute("commit")
    connection.run("drop role if exists clerk; create role clerk login password 'clerk'")
    host = shops["stock"].rpartition("@")[2]
    clerks = make(outbox=Outbox(databases={**shops, "stock": f"postgresql://clerk:clerk@{host}"}))
    for _ in range(2):
        assert coordinator_of(clerks).recover(connection)
        assert (prepared(shops), connection.value(DECISIONS)) == ([0, 1], 1)
    assert not coordinator_of(billing).recover(connection)
    assert all_charges(*shops.values()) == [[7], [7]]


def test_a_decision_is_kept_while_a_database_of_it_is_down(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, shops: Shops
) -> None:
    """The other databases commit meanwhile."""
    with own_server({"fsync": "off"}) as server:
        billing = make(outbox=Outbox(databases={"stock": shops["stock"], "away": server.dsn()}))
        with postgresql().connect(server.dsn(), for_handlers=True) as there:
            there.run("create table charges (number integer)")
            sessions = {"stock": connect(shops["stock"]), "away": there}
            InDoubt(coordinator_of(billing), connect(database), sessions).storage.raw.execute("commit")
        server.stop()
        coordinator_of(billing).recover(connection)
        assert (charges(connect(shops["stock"])), connection.value(DECISIONS)) == ([7], 1)
        server.start()  # a prepared transaction survives a restart of its server
        assert not coordinator_of(billing).recover(connection)
        with postgresql().connect(server.dsn(), for_handlers=True) as there:
            assert charges(there) == [7]
        assert not coordinator_of(billing).recover(connection)
        assert connection.value(DECISIONS) == 0


def test_a_database_that_was_taken_out_of_the_settings_is_said(
    make: MakeEndpoint,
    billing: Endpoint,
    in_doubt: InDoubt,
    connection: Connection,
    shops: Shops,
    caplog: pytest.LogCaptureFixture,
) -> None:
    in_doubt.storage.raw.execute("commit")
    less = make(outbox=Outbox(databases={"stock": shops["stock"]}))
    coordinator_of(less).recover(connection)
    assert "Transactions were decided over ledger, which this outbox has no more" in caplog.text
    assert connection.value(DECISIONS) == 1


def test_a_commit_without_an_answer_is_settled_by_the_recovery(
    make: MakeEndpoint, database: str, connection: Connection, connect: Any, shops: Shops
) -> None:
    """The worker cannot know whether it was decided, so it ends nothing."""
    billing = make(outbox=Outbox(databases=shops))
    charging(billing, enlisted=shops)
    coordinator_of(billing).recover(connection)  # the coordinator's identity is a row in that table too
    who_inserts_waits(connection, '"Billing_OutboxData_Decision"')
    billing.send("Billing", 1, type=CHARGE)
    with nobody_stands_by(connect(database)):
        billing.start()
        until(lambda: connection.all(WAITS))
        assert prepared(shops) == [1, 1]
        end_who_waits(connection)
        until(lambda: not connection.all(WAITS))
    until(lambda: not rows(database, "Billing"))
    until(lambda: prepared(shops) == [0, 0])
    assert all_charges(database, *shops.values()) == [[1], [1], [1]]
    assert sold(database) == [1]
