"""The routing table is read at most every five seconds per topic, as in the original (wire sheet 4)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint, SettingsRefused, checks
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire.addresses import Addressing
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows

PLACED, SALES, BILLING = "Shop.OrderPlaced", Address("public", "Sales"), Address("public", "Billing")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_foreign_changes_are_seen_after_five_seconds(connection: Connection) -> None:
    clock = Clock()
    ours, theirs = (
        Subscriptions(Addressing(postgresql(), "public"), clock=clock),
        Subscriptions(Addressing(postgresql(), "public")),
    )
    ours.create(connection)
    theirs.subscribe(connection, "Sales", SALES, PLACED)
    asked = found(ours, connection)
    assert asked() == [SALES]
    theirs.subscribe(connection, "Billing", BILLING, PLACED)
    clock.now = 4.9
    assert asked() == [SALES]
    clock.now = 5.0
    assert sorted(asked()) == [BILLING, SALES]


def test_expired_cache_entries_are_forgotten(connection: Connection) -> None:
    """A program may publish each message under its own type, and runs for months."""
    clock = Clock()
    ours = Subscriptions(Addressing(postgresql(), "public"), clock=clock)
    ours.create(connection)
    for second in range(50):
        clock.now = second
        ours.subscribers(connection, [f"Shop.Event{second}"])
        ours.subscribers(connection, [PLACED])
    assert len(ours._known) == 6  # those of the last five seconds


def test_a_schema_that_is_given_for_a_queue_holds_for_what_is_published(connection: Connection) -> None:
    """As for sends (wire sheet 1.4)."""
    ours = Subscriptions(Addressing(postgresql(), "public", {"Sales": "ops"}))
    ours.create(connection)
    ours.subscribe(connection, "Sales", SALES, PLACED)
    assert found(ours, connection)() == [Address("ops", "Sales")]


def test_a_row_that_names_no_address_keeps_nothing_from_the_others(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Subscriptions(Addressing(postgresql(), "public"))
    ours.create(connection)
    ours.subscribe(connection, "Sales", SALES, PLACED)
    for number, odd in enumerate(["", "a."]):
        row = {"odd": odd, "number": str(number), "topic": PLACED}
        connection.run('insert into "SubscriptionRouting" values (%(odd)s, %(number)s, %(topic)s)', row)
    assert found(ours, connection)() == [SALES]
    assert caplog.text.count("is left out") == 2


def test_own_changes_are_seen_at_once(connection: Connection) -> None:
    ours = Subscriptions(Addressing(postgresql(), "public"), clock=Clock())
    ours.create(connection)
    asked = found(ours, connection)
    assert asked() == []
    ours.subscribe(connection, "Sales", SALES, PLACED)
    assert asked() == [SALES]
    ours.unsubscribe(connection, "Sales", PLACED)
    assert asked() == []


def test_the_topic_is_the_type_without_its_assembly(connection: Connection) -> None:
    """Publishers of either kind look for it so; a longer topic would never match."""
    qualified = f"{PLACED}, Shop.Messages, Version=1.0.0.0"
    ours = Subscriptions(Addressing(postgresql(), "public"))
    ours.create(connection)
    ours.subscribe(connection, "Sales", SALES, qualified)
    assert found(ours, connection)() == [SALES]
    ours.unsubscribe(connection, "Sales", qualified)
    assert found(ours, connection)() == []


def found(subscriptions: Subscriptions, connection: Connection) -> Callable[[], list[Address]]:
    return lambda: subscriptions.subscribers(connection, [PLACED])


# The schema of subscriptions is a setting: endpoints in several schemas share one table (wire sheet 1.3, 4).
BILLED = "Shop.Messages.Events.OrderBilled"
SHARED = replace(QUICK, subscription_table='"public"."SubscriptionRouting"')
TABLES = "select schemaname, tablename from pg_tables where tablename ~ 'Subscription|Routes' order by 1, 2"


def test_an_endpoint_in_a_schema_of_its_own_publishes_to_all(recorded_database, connect):
    """The recorded shop: Invoicing is in Legacy, and its subscribers registered in public."""
    invoicing = Endpoint("Invoicing", recorded_database, schema="Legacy", settings=SHARED)
    invoicing.create_queues()
    recorded = connect(recorded_database)
    assert [tuple(row) for row in recorded.all(TABLES)] == [("public", "SubscriptionRouting")]
    message_id = invoicing.publish({}, type=BILLED)
    heard = [queue for queue in ("Sales", "Shipping") if message_id in rows(recorded_database, queue)[-1].headers]
    assert heard == ["Sales", "Shipping"]
    invoicing.subscribe("Shop.Settled")
    kept = """select queueaddress from "SubscriptionRouting" where topic = 'Shop.Settled'"""
    assert recorded.value(kept) == '"Legacy"."Invoicing"'
    invoicing.unsubscribe("Shop.Settled")
    assert recorded.all(kept) == []
    invoicing.stop()


@pytest.mark.parametrize(
    ("said", "table"),
    [
        ("", '"shop"."SubscriptionRouting"'),
        ("Routes", '"shop"."Routes"'),
        ("public.Routes", '"public"."Routes"'),
        ('"Shop.Routes"', '"shop"."Shop.Routes"'),
    ],
)
def test_its_address_is_read_as_any_other(connection, make_endpoint, said, table):
    connection.run("create schema shop")
    endpoint = make_endpoint("Sales", schema="shop", settings=replace(QUICK, subscription_table=said))
    (made,) = connection.all(TABLES)
    assert f'"{made.schemaname}"."{made.tablename}"' == table
    assert checks.faults(endpoint, connection) == []


def test_subscription_table_changes_at_run_time(make_endpoint):
    make_endpoint("Sales", settings=replace(QUICK, subscription_table="Routes")).subscribe(BILLED)
    other = make_endpoint("Billing")
    other.start()
    assert other.publish({}, type=BILLED) == ""
    other.apply(replace(QUICK, subscription_table="Routes"))
    message_id = other.publish({}, type=BILLED)
    assert message_id in rows(other.dsn, "Sales")[0].headers


@pytest.mark.parametrize(("said", "why"), [("a.", "subscription_table: .*names no"), ("r" * 56, "1 bytes too long")])
def test_invalid_subscription_table_name_is_refused(database, said, why):
    with pytest.raises(SettingsRefused, match=why):
        Endpoint("Sales", database, settings=replace(QUICK, subscription_table=said))
