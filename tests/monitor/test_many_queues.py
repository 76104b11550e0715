"""Hundreds of queues: the cost of one more does not grow with their number."""

from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.monitor.batch_query import AT_ONCE
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.sampler import ASK_AGAIN_EVERY, FIND_EVERY, Sampler
from tests.explain import executed
from tests.monitor.tables import fill, make, many
from tests.monitor.test_sampler import Clock

QUEUES = 500


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_the_catalog_is_read_by_keys(connection: Connection, is_analyzed: bool) -> None:
    many(connection, QUEUES)
    if is_analyzed:
        connection.run("analyze")
    plan = executed(connection, postgresql().monitor.tables(), {"schemas": ["public"], "family": None})
    assert plan.blocks < 60 * QUEUES
    found = discovery.find(connection, ["public"])
    assert len(found) == QUEUES
    assert {table.sequence_max for table in found} == {2**31 - 1}


class Counted:
    """A session that counts its round trips."""

    def __init__(self, connection: Connection):
        self._connection, self.trips = connection, 0

    def __getattr__(self, name: str) -> Any:
        self.trips += name in ("all", "one", "value", "run", "batch")
        return getattr(self._connection, name)

    def spent(self) -> int:
        trips, self.trips = self.trips, 0
        return trips


def test_many_are_asked_in_a_round_trip_and_silent_ones_in_turn(connection: Connection) -> None:
    """Each silent queue is asked again once a minute, not at each sample; all of them need a dozen round trips."""
    many(connection, 12 * AT_ONCE)
    session: Any = Counted(connection)
    clock = Clock()
    sampler = Sampler(lambda: session, ["public"], monotonic=clock, cap=1000)
    sampler.sample()
    spent = []
    for _ in range(round(ASK_AGAIN_EVERY / FIND_EVERY) - 1):
        session.spent()
        clock.now += FIND_EVERY / 2
        sampler.sample()
        without = session.spent()
        clock.now += FIND_EVERY / 2
        sampler.sample()
        spent.append(session.spent() - without)
    assert max(spent) < 10


def test_kind_by_messages_is_checked_again_within_a_minute(connection: Connection) -> None:
    addresses = [make(connection, name) for name in ("A", "B", "C")]
    clock = Clock()
    sampler = Sampler(lambda: connection, ["public"], monotonic=clock, cap=1000)
    assert {sample.table.kind for sample in sampler.sample()} == {TableKind.INPUT}
    for address in addresses:
        fill(connection, address, 1, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    for _ in range(round(ASK_AGAIN_EVERY / FIND_EVERY)):
        clock.now += FIND_EVERY
        kinds = {sample.table.kind for sample in sampler.sample()}
    assert kinds == {TableKind.ERROR}


@pytest.mark.parametrize(("header", "kind"), [("FailedQ", TableKind.ERROR), ("ProcessingEnded", TableKind.AUDIT)])
def test_kind_by_messages_holds_while_empty_until_others_contradict(
    connection: Connection, header: str, kind: TableKind
) -> None:
    address, clock = make(connection, "Sales"), Clock()
    sampler = Sampler(lambda: connection, ["public"], monotonic=clock, cap=1000)
    fill(connection, address, 1, headers=f"""'{{"NServiceBus.{header}":"x"}}'""")
    assert a_minute_later(sampler, clock) == kind
    connection.run('delete from "Sales"')
    assert a_minute_later(sampler, clock) == kind
    fill(connection, address, 500)
    assert a_minute_later(sampler, clock) == TableKind.INPUT


def test_plain_message_in_an_error_queue_does_not_change_its_kind(connection: Connection) -> None:
    """As an input queue its messages would not be archived, and their age would be judged."""
    address, clock = make(connection, "Sales.Faults"), Clock()
    sampler = Sampler(lambda: connection, ["public"], monotonic=clock, cap=1000)
    fill(connection, address, 3, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    assert a_minute_later(sampler, clock) == TableKind.ERROR
    fill(connection, address, 4)
    assert a_minute_later(sampler, clock) == TableKind.ERROR, "one of the newest five still says so"
    fill(connection, address, 1)
    assert a_minute_later(sampler, clock) == TableKind.INPUT


def a_minute_later(sampler: Sampler, clock: Clock) -> TableKind:
    for _ in range(round(ASK_AGAIN_EVERY / FIND_EVERY)):
        clock.now += FIND_EVERY
        (sample,) = sampler.sample()
    return sample.table.kind


@pytest.mark.parametrize("seen_gone", [False, True])
def test_a_table_made_again_is_not_what_messages_of_the_former_one_told(
    connection: Connection, seen_gone: bool
) -> None:
    address, clock = make(connection, "Sales"), Clock()
    sampler = Sampler(lambda: connection, ["public"], monotonic=clock, cap=1000)
    fill(connection, address, 1, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    assert a_minute_later(sampler, clock) == TableKind.ERROR
    connection.run('drop table "Sales"')
    if seen_gone:
        clock.now += FIND_EVERY
        assert sampler.sample() == []
    make(connection, "Sales")
    assert a_minute_later(sampler, clock) == TableKind.INPUT


def test_an_id_is_looked_for_in_many_queues_by_few_round_trips(connection: Connection) -> None:
    many(connection, QUEUES)
    fill(connection, Address("public", "Q7"), 1)
    row_id = connection.value('select id from "Q7"')
    session: Any = Counted(connection)
    tables = discovery.by_shape(session, ["public"])
    connection.run('drop table "Q8"')
    found = dict(zip((table.address.table for table in tables), browse.messages(session, tables, row_id), strict=True))
    assert session.spent() < QUEUES / AT_ONCE + AT_ONCE + 3
    assert isinstance(found.pop("Q8"), DatabaseError)
    assert [name for name, message in found.items() if message] == ["Q7"]
