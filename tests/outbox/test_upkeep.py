"""Clean-up and relay: one leader, nothing sent twice, nothing left behind (O8, O9)."""

import threading
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import orjson
import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.outbox import Outbox, upkeep
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import CHARGE, MakeEndpoint
from tests.outbox.test_receive import records, sold
from tests.transport.recording_observer import rows
from tests.waiting import until

OLD = """insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
    select 'old ' || i, true, now() at time zone 'utc' - interval '8 days', '[]' from generate_series(1, %s) i"""
PENDING = """insert into "Billing_OutboxData" ("MessageId", "Operations", "CreatedAt") select 'pending ' || i,
    jsonb_build_array(jsonb_build_object('MessageId', 'sent ' || i, 'Headers', '{}'::jsonb,
        'Body', encode(i::text::bytea, 'base64'), 'Options', jsonb_build_object('Destination', %s::text))),
    now() - interval '1 hour' from generate_series(1, %s) i"""
HOUR = timedelta(hours=1)


def upkeep_of(endpoint: Endpoint) -> OutboxUpkeep:
    assert isinstance(endpoint.outbox, EndpointOutbox)
    return OutboxUpkeep(endpoint.outbox, endpoint.breakers.new("test"))


def test_two_cleaners_of_five_thousand_records_leave_none(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str
) -> None:
    """The original's second cleaner deletes nothing and stops while a thousand are left (outbox sheet 8)."""
    make()
    connection.run(OLD, [5000])
    store = postgresql().outbox_store(Address("public", "Billing_OutboxData"))

    def clean() -> None:
        session = connect(database)
        while store.purge(session, timedelta(days=7), 4000):
            pass

    cleaners = [threading.Thread(target=clean) for _ in range(2)]
    for each in cleaners:
        each.start()
    for each in cleaners:
        each.join(60)
    assert records(connection) == []


def test_young_or_undispatched_records_stay(make: MakeEndpoint, connection: Connection) -> None:
    billing = make(outbox=Outbox(relay_after=None))
    connection.run(OLD, [3])
    connection.run(PENDING, ["Sales", 1])
    connection.run("""update "Billing_OutboxData" set "DispatchedAt" = now() at time zone 'utc' - interval '6 days'
        where "MessageId" = 'old 1'""")
    upkeep_of(billing).run_once()
    left = connection.all('select "MessageId" from "Billing_OutboxData" order by 1')
    assert [name for (name,) in left] == ["old 1", "pending 1"]


def test_in_whichever_zone_a_session_is(make: MakeEndpoint, connection: Connection) -> None:
    """A session thirteen hours to the east must not take a new record for one of a week ago."""
    make()
    connection.run("set timezone = 'Pacific/Apia'")
    connection.run(OLD, [2])
    connection.run("""update "Billing_OutboxData" set "DispatchedAt" = now() at time zone 'utc' - interval '1 hour'
        where "MessageId" = 'old 1'""")
    store = postgresql().outbox_store(Address("public", "Billing_OutboxData"))
    assert store.purge(connection, 2 * HOUR, 100) == 1


def test_a_follower_does_nothing_until_the_leader_is_gone(make: MakeEndpoint, connection: Connection) -> None:
    billing = make()
    first, second = upkeep_of(billing), upkeep_of(billing)
    first.run_once()
    connection.run(OLD, [3])
    second.run_once()
    assert len(records(connection)) == 3
    connection.run("select pg_terminate_backend(pid, 20000) from pg_locks where locktype = 'advisory'")
    second.run_once()
    assert records(connection) == []


def test_undispatched_records_are_sent_once_by_any_number_of_relays(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    billing = make()
    connection.run(PENDING, ["Sales", 250])
    upkeep_of(billing).run_once()
    upkeep_of(billing).run_once()
    assert sold(database) == list(range(1, 251))
    assert records(connection) == [(True, [])] * 250


LEFT = [
    {"Destination": "Sales", "TimeToBeReceived": "00:10:00"},
    {"Destination": "Sales", "DelayDeliveryFor": "01:00:00"},
    {"Destination": "Sales", "DeliverAt": "2999-01-02 03:04:05:000006 Z"},
]
WAITING = 'select headers, due, due - now() as left from "Billing.Delayed" order by due'


@pytest.mark.parametrize("by", ["relay", "duplicate"])
def test_delayed_operations_left_by_a_crash_are_delayed(
    make: MakeEndpoint, connection: Connection, database: str, by: str
) -> None:
    """By the options of the record, as the original writes them. A relative delay starts when the message is sent."""
    billing = make(outbox=Outbox(relay_after=HOUR))
    connection.run(PENDING, ["Sales", 1])
    connection.run(
        """update "Billing_OutboxData" set "CreatedAt" = now() - interval '1 day', "Operations" = (
            select jsonb_agg("Operations"->0 || jsonb_build_object('MessageId', 'sent ' || i, 'Options', options))
            from jsonb_array_elements(%s::jsonb) with ordinality as given (options, i))""",
        [orjson.dumps(LEFT).decode()],
    )
    if by == "relay":
        upkeep_of(billing).run_once()
    else:
        billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "pending 1"})
        billing.start()
        until(lambda: not rows(database, "Billing"))
    assert records(connection) == [(True, [])]
    assert [h.parse(row.headers)[h.MESSAGE_ID] for row in rows(database, "Sales")] == ["sent 1"]
    assert connection.value("select expires - now() < '10 minutes' and expires - now() > '9 minutes' from \"Sales\"")
    span, instant = connection.all(WAITING)
    assert timedelta(minutes=59) < span.left <= HOUR
    assert instant.due == datetime(2999, 1, 2, 3, 4, 5, 6, UTC)
    assert [h.parse(row.headers)[h.MESSAGE_ID] for row in (span, instant)] == ["sent 2", "sent 3"]
    assert {h.parse(row.headers)[h.FORWARD_DESTINATION] for row in (span, instant)} == {"Sales"}


def test_delayed_operations_left_by_our_endpoint_are_delayed(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str
) -> None:
    """Its own code wrote the record, committed it, and crashed before sending."""
    billing, caller = make(), connect(database)
    with caller.transaction(), billing.transactional_session(caller.raw) as session:
        session.send("Sales", 1, type=CHARGE, ttbr=timedelta(minutes=10))
        session.send("Sales", 2, type=CHARGE, delay=HOUR)
        session.send("Sales", 3, type=CHARGE, delay=datetime(2999, 1, 2, 3, 4, 5, 6, UTC))
    connection.run("""update "Billing_OutboxData" set "CreatedAt" = now() - interval '1 day'""")
    assert sold(database) == []
    upkeep_of(billing).run_once()
    assert sold(database) == [1]
    assert connection.value("select expires - now() < '10 minutes' and expires - now() > '9 minutes' from \"Sales\"")
    span, instant = connection.all(WAITING)
    assert timedelta(minutes=59) < span.left <= HOUR
    assert instant.due == datetime(2999, 1, 2, 3, 4, 5, 6, UTC)


def test_cleaned_up_elsewhere_old_records_stay(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """The relay of the same process continues."""
    billing = make(outbox=Outbox(clean_every=None))
    connection.run(OLD, [3])
    connection.run(PENDING, ["Sales", 1])
    upkeep_of(billing).run_once()
    assert sold(database) == [1]
    assert len(records(connection)) == 4


def test_record_younger_than_the_grace_is_not_relayed(make: MakeEndpoint, connection: Connection) -> None:
    billing = make(outbox=Outbox(relay_after=2 * HOUR))
    connection.run(PENDING, ["Sales", 1])
    upkeep_of(billing).run_once()
    assert [dispatched for dispatched, _ in records(connection)] == [False]


def test_a_record_that_cannot_be_sent_keeps_nobody_else_back(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    billing = make()
    connection.run(PENDING, ["Nowhere", 150])
    connection.run("""insert into "Billing_OutboxData" ("MessageId", "Operations", "CreatedAt")
        values ('unreadable', '[{"Options": 1}]', now() - interval '1 hour')""")
    connection.run(PENDING.replace("'pending '", "'good '"), ["Sales", 20])
    upkeep_of(billing).run_once()
    assert sold(database) == list(range(1, 21))
    assert sum(not dispatched for dispatched, _ in records(connection)) == 151


def test_a_table_of_the_originals_is_relayed_by_when_it_was_seen_first(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """It has no time of writing."""
    billing = make(outbox=Outbox(relay_after=timedelta(milliseconds=300)))
    connection.run(PENDING, ["Sales", 1])
    connection.run('alter table "Billing_OutboxData" drop column "CreatedAt"')
    upkeep = upkeep_of(billing)
    upkeep.run_once()
    assert sold(database) == []

    def relayed() -> bool:
        upkeep.run_once()
        return sold(database) == [1]

    until(relayed)


def test_first_seen_times_from_a_port_outlive_the_process(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """As a managed process gets them from the console's database; no record is locked during the query."""
    asked = list[list[str]]()

    class Remembering:
        def ages(self, session: Connection, table: Address, records: Collection[str]) -> dict[str, timedelta]:
            assert table == Address("public", "Billing_OutboxData")
            connection.run('select from "Billing_OutboxData" for update nowait')
            asked.append(sorted(records))
            return {each: 2 * HOUR if each != "pending 2" else HOUR / 2 for each in records}

    billing = make(outbox=Outbox(relay_after=HOUR, first_seen=Remembering()))
    connection.run(PENDING, ["Sales", 3])
    connection.run('alter table "Billing_OutboxData" drop column "CreatedAt"')
    upkeep_of(billing).run_once()
    assert asked == [["pending 1", "pending 2", "pending 3"]]
    assert sold(database) == [1, 3]


def test_each_run_that_sent_something_is_told_of_once(
    make: MakeEndpoint, connection: Connection, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if a later batch fails. An error of the callback stops nothing."""
    told = list[tuple[str, int, int]]()

    def tell(outbox: str, records: int, messages: int) -> None:
        told.append((outbox, records, messages))
        raise RuntimeError("the account is closed")

    billing = make(outbox=Outbox(relayed=tell))
    keeping = upkeep_of(billing)
    keeping.run_once()
    assert told == []
    connection.run(PENDING, ["Sales", 150])
    keeping.run_once()
    keeping.run_once()
    assert told == [('"public"."Billing_OutboxData"', 150, 150)]
    connection.run(PENDING.replace("'pending '", "'more '"), ["Sales", 150])
    batches, pending = count(1), postgresql().outbox_store(Address("public", "x")).__class__.pending

    def breaks(*given: Any) -> Any:
        if next(batches) == 2:
            raise TimedOut("it took too long")
        return pending(*given)

    monkeypatch.setattr(postgresql().outbox_store(Address("public", "x")).__class__, "pending", breaks)
    with pytest.raises(TimedOut):
        keeping.run_once()
    assert told[1:] == [('"public"."Billing_OutboxData"', 100, 100)]


def test_a_process_looks_soon_after_its_start(make: MakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a process restarted more often than it looks would never relay."""
    billing = make(outbox=Outbox(relay_after=2 * HOUR, clean_every=None))
    monkeypatch.setattr(upkeep, "FIRST_LOOK", 0.01)
    looked = threading.Event()
    monkeypatch.setattr(OutboxUpkeep, "run_once", lambda self: looked.set())
    keeping = upkeep_of(billing)
    keeping.start()
    assert looked.wait(30)
    keeping.stop()


def test_an_idle_outbox_asks_one_statement_a_look(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str
) -> None:
    """By both indexes, however many records there are."""
    make()
    connection.run("""insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
        select i, true, now() at time zone 'utc', '[]' from generate_series(1, 20000) i""")
    connection.run('analyze "Billing_OutboxData"')
    store = postgresql().outbox_store(Address("public", "Billing_OutboxData"))
    session, asked = connect(database), list[str]()
    ask = session.all

    def counted(query: Any, params: Any = None) -> Any:
        asked.append(str(query))
        return ask(query, params)

    session.all = counted
    store.work(session, HOUR, HOUR)
    before = len(asked)
    assert store.work(session, HOUR, HOUR) == (True, False, False)
    assert len(asked) == before + 1
    query = postgresql().outbox.work(table=store.address, is_over=postgresql().outbox.is_over).as_string(None)
    plan = connection.all(f"explain {query}", {"keep": 3600, "grace": 3600, "table": "x"})
    assert "Seq Scan" not in str(plan)
