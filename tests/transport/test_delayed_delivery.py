"""Delayed messages, from send to handler (wire sheet 3)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport import Unrecoverable
from pgqueue_admin.transport.delayed import due_message_mover
from pgqueue_admin.transport.recoverability.failure_cache import FailureCache
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time, wire_time
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

REMIND = "Shop.Remind"
IS_SAGA_TIMEOUT = "NServiceBus.IsSagaTimeoutMessage"
SOON = timedelta(milliseconds=300)


@pytest.fixture
def handled(handlers):
    """Handled bodies with their times."""
    handled = []
    handlers.handle(REMIND)(lambda body, context: handled.append((body, context.headers, datetime.now(UTC))))
    return handled


@pytest.fixture
def seldom(monkeypatch):
    """The mover polls only once, at its start: later messages are moved because it knows their due times."""
    for name in ("FIRST_SECONDS", "MOST_SECONDS"):
        monkeypatch.setattr(due_message_mover, name, 600.0)


def delayed_rows(endpoint):
    with endpoint.connect() as connection:
        return connection.all(f'select id, headers, body, due from "{endpoint.schema}"."{endpoint.name}.Delayed"')


def test_a_delayed_row_has_the_shape_of_a_recorded_one(endpoint, recording, connect):
    endpoint.send("Sales", {"n": 1}, type=REMIND, delay=timedelta(days=3))
    (row,) = delayed_rows(endpoint)
    ours = h.parse(row.headers)
    recorded = [
        headers
        for each in connect(recording).all('select headers from "Sales.Delayed"')
        if IS_SAGA_TIMEOUT in (headers := h.parse(each.headers))
    ]
    saga = {h.SAGA_ID, h.SAGA_TYPE, h.ORIGINATING_SAGA_ID, h.ORIGINATING_SAGA_TYPE, IS_SAGA_TIMEOUT, h.RELATED_TO}
    assert set(ours) == set(recorded[0]) - saga
    for headers in (ours, recorded[0]):
        assert parse_time(headers[h.DELIVER_AT]) - parse_time(headers[h.TIME_SENT]) == timedelta(days=3)
    assert ours[h.FORWARD_DESTINATION] == "Sales"
    assert abs(row.due - parse_time(ours[h.DELIVER_AT])) < timedelta(seconds=30)
    assert row.body == b'{"n":1}'
    assert rows(endpoint.dsn, "Sales") == []


@pytest.mark.parametrize(
    ("destination", "text"), [("Sales", "Sales"), (Address("public", "Sales"), '"public"."Sales"')]
)
def test_the_destination_stands_as_given(endpoint, destination, text):
    endpoint.send(destination, {}, type=REMIND, delay=timedelta(1))
    assert h.parse(delayed_rows(endpoint)[0].headers)[h.FORWARD_DESTINATION] == text


def test_delayed_message_is_handled_when_due(endpoint, handled, seldom):
    """Neither earlier nor only at the mover's next poll."""
    endpoint.start()
    time_sent = datetime.now(UTC)
    endpoint.send("Sales", "soon", type=REMIND, delay=SOON)
    endpoint.send("Sales", "at", type=REMIND, delay=time_sent + 2 * SOON)
    until(lambda: len(handled) == 2)
    handled_at = {body: at for body, _, at in handled}
    assert handled_at.keys() == {"soon", "at"}
    assert handled_at["soon"] - time_sent >= SOON
    assert handled_at["at"] - time_sent >= 2 * SOON
    assert all(h.FORWARD_DESTINATION not in headers and h.DELIVER_AT in headers for _, headers, _ in handled)
    assert delayed_rows(endpoint) == []


def test_its_critical_time_counts_from_when_it_is_due(endpoint, handled, spy):
    """The hour of its delay does not count."""
    now = datetime.now(UTC)
    an_hour_ago = {h.TIME_SENT: wire_time(now - timedelta(hours=1))}
    endpoint.send("Sales", 1, type=REMIND, headers=an_hour_ago, delay=now + SOON)
    endpoint.start()
    until(lambda: spy.critical_times)
    finished(endpoint)
    ((_, headers, _),) = handled
    assert parse_time(headers[h.DELIVER_AT]) - parse_time(headers[h.TIME_SENT]) > timedelta(hours=1)
    (critical_time,) = spy.critical_times
    assert 0 <= critical_time < 600


def test_due_message_is_moved_beside_a_locked_overdue_one(endpoint, handled, seldom, connection):
    """Both stored by another process: no send here wakes the mover."""
    store = 'insert into "Sales.Delayed" (headers, body, due) values (%s, %s, now() + %s)'
    headers = h.dump({h.ENCLOSED_MESSAGE_TYPES: REMIND})
    connection.run(store, [headers, b"1", timedelta(hours=-1)])
    with connection.transaction():
        connection.run('select from "Sales.Delayed" for update')
        with endpoint.connect() as another:
            another.run(store, [headers, b"2", timedelta(seconds=1)])
        endpoint.start()
        until(lambda: handled)
        assert [body for body, _, _ in handled] == [2]


def test_overdue_message_is_moved_at_the_start(endpoint, handled):
    endpoint.send("Sales", 1, type=REMIND, delay=datetime(2001, 1, 1, tzinfo=UTC))
    endpoint.start()
    until(lambda: handled)


def test_the_second_hop_goes_to_another_queue(make_endpoint, handlers):
    """Its own endpoint holds it, then forwards it: a new row, the same message, no forward header, no expiry."""
    sales = make_endpoint()
    make_endpoint("Billing")
    message_id = sales.send("Billing", {"n": 1}, type=REMIND, delay=timedelta())
    (kept,) = delayed_rows(sales)
    sales.start()
    until(lambda: rows(sales.dsn, "Billing"))
    (row,) = rows(sales.dsn, "Billing")
    headers = h.parse(row.headers)
    assert row.id != kept.id
    assert (row.expires, row.body) == (None, b'{"n":1}')
    assert headers == {name: value for name, value in h.parse(kept.headers).items() if name != h.FORWARD_DESTINATION}
    assert headers[h.MESSAGE_ID] == message_id
    until(lambda: not rows(sales.dsn, "Sales"))


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_due_control_or_empty_message_is_forwarded(make_endpoint, body):
    sales = make_endpoint()
    make_endpoint("Billing")
    sales.send('"public"."Billing"', body, type=REMIND, headers={h.CONTROL_MESSAGE: "True"}, delay=timedelta())
    sales.start()
    until(lambda: [row.body for row in rows(sales.dsn, "Billing")] == [body])


@pytest.mark.parametrize("mode", ["sends_atomic_with_receive", "receive_only", "none"])
@pytest.mark.parametrize("destination", ["NoSuch.Queue", "NoSuchQueue"])
def test_a_forward_that_fails_goes_to_the_error_queue(make_endpoint, handlers, mode, destination, spy):
    """Tried once; with the error and the destination, but no processing endpoint, as recorded."""
    endpoint = make_endpoint(settings=replace(QUICK, transaction_mode=mode, immediate_retries=0))
    message_id = endpoint.send(destination, {"n": 1}, type=REMIND, delay=timedelta())
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    (row,) = rows(endpoint.dsn, "error")
    headers = h.parse(row.headers)
    assert headers[h.FAILED_Q] == destination
    assert headers[h.MESSAGE_ID] == message_id
    assert headers[h.EXCEPTION_HELP_LINK] is None
    assert destination in headers[h.EXCEPTION_MESSAGE]
    assert parse_time(headers[h.TIME_OF_FAILURE])
    assert not {h.PROCESSING_ENDPOINT, h.PROCESSING_MACHINE, h.HOST_ID, h.FORWARD_DESTINATION} & set(headers)
    assert row.body == b'{"n":1}'
    assert rows(endpoint.dsn, "Sales") == []
    assert (spy.counts["failed"], spy.counts["retried"]) == (1, 0)


def test_a_forward_that_fails_is_nobodys_until_that_is_remembered(endpoint, connection, monkeypatch):
    """Otherwise another slot would try it too."""
    remember, free = FailureCache.remember, []

    def looking(self, *given):
        free.append(connection.value('select count(*) from (select from "Sales" for update skip locked) free'))
        return remember(self, *given)

    monkeypatch.setattr(FailureCache, "remember", looking)
    endpoint.send("NoSuchQueue", {}, type=REMIND, delay=timedelta())
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert free == [0]


def test_an_archive_gets_a_failed_forward_as_it_was_received(make_endpoint):
    """With its forward header, so that a retry forwards it again."""
    taken = []
    settings = replace(QUICK, on_exhausted="archive")
    endpoint = make_endpoint(settings=settings, exhausted=lambda connection, *given: taken.append(given))
    endpoint.send("NoSuchQueue", {}, type=REMIND, delay=timedelta())
    endpoint.start()
    until(lambda: taken)
    ((message, failure),) = taken
    assert h.parse(message.headers_text)[h.FORWARD_DESTINATION] == failure.forward_to == "NoSuchQueue"
    assert failure.queue == endpoint.queue.address


def test_a_row_that_cannot_be_read_ends_where_an_operator_finds_it(endpoint, connection):
    connection.run("""insert into "Sales.Delayed" (headers, body, due) values ('{"broken', null, '2001-01-01')""")
    endpoint.start()
    until(lambda: [row.headers for row in rows(endpoint.dsn, "error")] == ['{"broken'])


def test_a_handler_delays_in_the_receive_transaction(endpoint, handlers, seldom):
    """A failed attempt delays nothing, the successful one does so once; and the mover knows at once."""
    attempts, reminded = [], []

    @handlers.handle("Shop.PlaceOrder")
    def place(order, context):
        attempts.append(1)
        context.send("Sales", len(attempts), type=REMIND, delay=SOON)
        if len(attempts) < 3:
            raise RuntimeError

    handlers.handle(REMIND)(lambda body, context: reminded.append(body))
    endpoint.send("Sales", {}, type="Shop.PlaceOrder")
    endpoint.start()
    until(lambda: reminded)
    assert reminded == [3]
    assert delayed_rows(endpoint) == []


def test_immediate_ones_are_stored_whatever_becomes_of_the_message(endpoint, handlers):
    @handlers.handle("Shop.PlaceOrder")
    def place(order, context):
        context.send("Sales", 1, type=REMIND, delay=timedelta(1), immediate=True)
        raise Unrecoverable

    endpoint.send("Sales", {}, type="Shop.PlaceOrder")
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert len(delayed_rows(endpoint)) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delay": timedelta(1), "ttbr": timedelta(2)}, "time to be received"),
        ({"delay": timedelta(seconds=-1)}, "over before"),
        ({"delay": timedelta.max}, "no header can say"),
        ({"delay": datetime(2030, 1, 1)}, "no zone"),  # noqa: DTZ001
        ({"delay": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))}, "1 to 9999"),
        ({"delay": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))}, "1 to 9999"),
    ],
)
def test_invalid_delay_options_are_refused(endpoint, options, said):
    with pytest.raises(ValueError, match=said):
        endpoint.send("Sales", {}, type=REMIND, **options)


def test_a_delayed_table_that_is_gone_is_waited_for(endpoint, handled, connection, caplog):
    connection.run('drop table "Sales.Delayed"')
    endpoint.start()
    endpoint.send("Sales", "now", type=REMIND)
    until(lambda: handled)
    until(lambda: "Moving due messages" in caplog.text)
    endpoint.create_queues()
    endpoint.send("Sales", "later", type=REMIND, delay=timedelta())
    until(lambda: len(handled) == 2)


def test_two_instances_handle_each_once(make_endpoint, handled):
    instances = [make_endpoint(), make_endpoint()]
    for number in range(150):
        instances[0].send("Sales", number, type=REMIND, delay=SOON)
    for instance in instances:
        instance.start()
    until(lambda: len(handled) >= 150)
    until(lambda: not rows(instances[0].dsn, "Sales"))
    assert sorted(body for body, _, _ in handled) == list(range(150))


def test_recorded_delayed_retries_are_handled_by_us(recorded_database, make_endpoint, handlers, connect):
    """Thirty that a real endpoint delayed: once due, they come back and are handled here."""
    seen = []
    for command in ("ChargeCard", "RefundCard"):
        handlers.handle(f"Shop.Messages.Commands.{command}")(lambda body, context: seen.append(context.headers))
    connection = connect(recorded_database)
    connection.run('truncate "Billing"')
    connection.run("update \"Billing.Delayed\" set due = now() - interval '1 s'")
    make_endpoint("Billing", recorded_database).start()
    until(lambda: len(seen) == 30)
    assert all(headers[h.RETRIES] == "1" and h.FORWARD_DESTINATION not in headers for headers in seen)


def test_a_hand_made_delayed_row_needs_no_forward_header(endpoint, handled, connection):
    headers = h.dump({h.ENCLOSED_MESSAGE_TYPES: REMIND})
    connection.run('insert into "Sales.Delayed" (headers, body, due) values (%s, %s, now())', [headers, b"{}"])
    endpoint.start()
    until(lambda: handled)
