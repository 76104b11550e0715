"""The routing table is read at most every five seconds a topic, as the original does (wire sheet 4)."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire.addresses import Addressing

PLACED, SALES, BILLING = "Shop.OrderPlaced", Address("public", "Sales"), Address("public", "Billing")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_others_change_is_seen_after_five_seconds(connection: Connection) -> None:
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


def test_what_is_too_old_to_be_used_is_forgotten(connection: Connection) -> None:
    """A program may publish each message under a type of its own, and runs for months."""
    clock = Clock()
    ours = Subscriptions(Addressing(postgresql(), "public"), clock=clock)
    ours.create(connection)
    for second in range(50):
        clock.now = second
        ours.subscribers(connection, [f"Shop.Event{second}"])
        ours.subscribers(connection, [PLACED])
    assert len(ours._known) == 6  # of the last five seconds


def test_a_schema_that_is_given_for_a_queue_holds_for_what_is_published(connection: Connection) -> None:
    """As it does for what is sent (wire sheet 1.4)."""
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


def test_what_we_change_is_seen_at_once(connection: Connection) -> None:
    ours = Subscriptions(Addressing(postgresql(), "public"), clock=Clock())
    ours.create(connection)
    asked = found(ours, connection)
    assert asked() == []
    ours.subscribe(connection, "Sales", SALES, PLACED)
    assert asked() == [SALES]
    ours.unsubscribe(connection, "Sales", PLACED)
    assert asked() == []


def test_the_topic_is_the_type_without_its_assembly(connection: Connection) -> None:
    """As publishers look for it, of either kind; a subscription to more than that would never match."""
    qualified = f"{PLACED}, Shop.Messages, Version=1.0.0.0"
    ours = Subscriptions(Addressing(postgresql(), "public"))
    ours.create(connection)
    ours.subscribe(connection, "Sales", SALES, qualified)
    assert found(ours, connection)() == [SALES]
    ours.unsubscribe(connection, "Sales", qualified)
    assert found(ours, connection)() == []


def found(subscriptions: Subscriptions, connection: Connection) -> Callable[[], list[Address]]:
    return lambda: subscriptions.subscribers(connection, [PLACED])
