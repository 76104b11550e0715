"""Where subscriptions lie can be said: endpoints in several schemas share one table (wire sheet 1.3, 4)."""

from dataclasses import replace

import pytest

from pgqueue_admin.transport import Endpoint, SettingsRefused, checks
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows

BILLED = "Shop.Messages.Events.OrderBilled"
SHARED = replace(QUICK, subscription_table='"public"."SubscriptionRouting"')
TABLES = "select schemaname, tablename from pg_tables where tablename ~ 'Subscription|Routes' order by 1, 2"


def test_an_endpoint_in_a_schema_of_its_own_publishes_to_all(recorded_database, connect):
    """The recorded shop: Invoicing lies in Legacy, and whoever listens to it has subscribed in public."""
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


def test_it_changes_while_the_endpoint_runs(make_endpoint):
    make_endpoint("Sales", settings=replace(QUICK, subscription_table="Routes")).subscribe(BILLED)
    other = make_endpoint("Billing")
    other.start()
    assert other.publish({}, type=BILLED) == ""
    other.apply(replace(QUICK, subscription_table="Routes"))
    message_id = other.publish({}, type=BILLED)
    assert message_id in rows(other.dsn, "Sales")[0].headers


@pytest.mark.parametrize(("said", "why"), [("a.", "subscription_table: .*names no"), ("r" * 56, "1 bytes too long")])
def test_what_names_no_table_is_refused(database, said, why):
    with pytest.raises(SettingsRefused, match=why):
        Endpoint("Sales", database, settings=replace(QUICK, subscription_table=said))
