"""Small parts that need no database: handlers, serializers, failures, breaker."""

import threading
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, Deadlock
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import (
    After,
    Discard,
    EndpointSettings,
    Exhaust,
    FailedAttempt,
    Handlers,
    Immediately,
    IncomingMessage,
    Unrecoverable,
)
from pgqueue_admin.transport.delayed import table
from pgqueue_admin.transport.errors import MessageUnreadable
from pgqueue_admin.transport.failure import failure_of
from pgqueue_admin.transport.receiving.message_pump import QueuePeeker
from pgqueue_admin.transport.receiving.pump_state import ReceiveQuota
from pgqueue_admin.transport.recoverability.failure_cache import MOST_REMEMBERED, FailureCache
from pgqueue_admin.transport.recoverability.policy import decide, standard
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.serializers import JsonSerializer, RawSerializer, Serializers


def test_handlers_of_every_type_once_the_concrete_first():
    handlers, more = Handlers(), Handlers(unrecoverable=(KeyError,))

    @more.handle("Shop.IEvent", "Shop.OrderPlaced, Shop, Version=1.0.0.0")
    def both(message, context): ...

    @handlers.handle("Shop.IEvent")
    def base(message, context): ...

    together = handlers | more
    assert together.of(["Shop.OrderPlaced", "Shop.IEvent"]) == [both, base]
    assert together.of(["shop.orderplaced"]) == []
    assert together.types == ["Shop.IEvent", "Shop.OrderPlaced"]
    assert together.unrecoverable == (KeyError,)
    assert handlers.of(["Shop.OrderPlaced"]) == []


def test_serializers_by_content_type():
    """T5: the main one writes, and reads unknown content types."""
    serializers = Serializers(JsonSerializer(), RawSerializer())
    assert serializers.dump({"ü": 1}) == '{"ü":1}'.encode()
    assert serializers.dump(bytearray(b"\0")) == b"\0"
    assert serializers.load(b'{"a":1}', "application/json") == {"a": 1}
    assert serializers.load(b'{"a":1}', "application/json; charset=utf-8") == {"a": 1}
    assert serializers.load(b'{"a":1}', None) == {"a": 1}
    assert serializers.load(b"\xff", "application/octet-stream") == b"\xff"
    with pytest.raises(MessageUnreadable, match="text/xml"):
        serializers.load(b"<a/>", "text/xml")


def test_main_serializer_can_be_replaced():
    assert Serializers(RawSerializer()).main.content_type == "application/octet-stream"
    assert Serializers(RawSerializer()).load(b"{", "unknown") == b"{"


def failure(error=None, recoverable=True):
    return failure_of(error or ValueError("no"), "Sales", Address("public", "Sales"), recoverable=recoverable)


def test_failures_are_counted_by_row_and_the_oldest_forgotten():
    failures, rows = FailureCache(most=2), [uuid4() for _ in range(3)]
    assert [failures.remember(rows[0], failure()).attempts for _ in range(3)] == [1, 2, 3]
    for row in rows[1:]:
        failures.remember(row, failure())
    assert failures.of(rows[0]) is None
    failures.forget(rows[1])
    assert failures.of(rows[1]) is None
    assert failures.of(rows[2]).attempts == 1


def test_failures_fill_no_memory_however_long_their_traces_are():
    """A row that another process finished is otherwise kept for ever, and traces have any length."""
    failures = FailureCache(characters=10_000)
    long = replace(failure(), stack_trace="x" * 4_000, message="")
    for row in range(100):
        failures.remember(row, long)
        failures.decided(row, long)
    assert [row for row in range(100) if failures.of(row)] == [98, 99]
    failures.forget(98)
    failures.remember(100, long)
    assert [row for row in range(101) if failures.of(row)] == [99, 100]
    assert failures.remember(101, replace(long, stack_trace="x" * 50_000)).attempts == 1
    assert failures.remember(101, long).attempts == 2, "the newest always has room, or it would be tried for ever"


def attempted(attempts=1, settings=None, headers=None, **more):
    message = IncomingMessage(Address("public", "Sales"), uuid4(), 1, False, "{}", b"{}", headers or {})
    return FailedAttempt(message, replace(failure(**more), attempts=attempts), settings or EndpointSettings())


def test_when_a_message_is_tried_again():
    """Wire sheet 8.1: five retries at once, then rounds after 10, 20, 30 s with as many."""
    assert standard(attempted(5)) == Immediately()
    assert standard(attempted(6)) == After(timedelta(seconds=10))
    assert standard(attempted(6, headers={h.RETRIES: "2"})) == After(timedelta(seconds=30))
    assert standard(attempted(6, headers={h.RETRIES: "3"})) == Exhaust()
    assert standard(attempted(recoverable=False)) == Exhaust()
    assert standard(attempted(error=Unrecoverable("x"))) == Exhaust()


def test_policy_cannot_retry_an_unrecoverable_failure():
    assert decide(lambda given: Immediately(), attempted(recoverable=False)) == Exhaust()
    assert decide(lambda given: After(timedelta()), attempted(recoverable=False)) == Exhaust()
    assert decide(lambda given: Exhaust("elsewhere"), attempted(recoverable=False)) == Exhaust("elsewhere")
    assert decide(lambda given: Discard("why"), attempted()) == Discard("why")


def test_a_failure_knows_its_cause_and_never_raises():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    told = failure(Mute())
    assert "could not be read" in told.message
    assert told.exception_type.endswith("Mute")
    assert told.stack_trace


def test_the_breaker_arms_triggers_and_disarms(caplog):
    """Wire sheet 6: 1 s between attempts, 10 s once nothing has succeeded for 30 s; a deadlock does not count."""
    now = [0.0]
    breaker = CircuitBreaker("Peeking", clock=lambda: now[0])
    assert breaker.failed(Deadlock()) == 0
    assert breaker.failed(DatabaseDown("refused")) == 1
    now[0] = 29
    assert breaker.failed(DatabaseDown()) == 1
    assert not breaker.triggered
    now[0] = 30
    assert breaker.failed(DatabaseDown()) == 10
    assert breaker.triggered
    breaker.succeeded()
    assert not breaker.triggered
    assert breaker.failed(DatabaseDown()) == 1
    said = [record.levelname for record in caplog.records if record.levelname != "INFO"]
    assert said == ["WARNING", "ERROR", "WARNING"]


@pytest.mark.parametrize(("troubled", "triggered", "receives"), [(False, False, 7), (True, False, 1), (False, True, 1)])
def test_triggered_breaker_allows_one_receive(troubled, triggered, receives):
    """Wire sheet 6."""
    breaker = CircuitBreaker("Peeking")
    breaker.triggered = triggered
    peeker = QueuePeeker(
        TableQueue(postgresql(), Address("public", "Sales")), connect=None, low_water=None, breaker=breaker
    )
    assert peeker.receives(7, EndpointSettings(), troubled) == receives


def test_the_numbers_of_the_original_hold():
    """Wire sheet 3, 5, 6."""
    assert (table.BATCH, MOST_REMEMBERED, ANSWER_SECONDS) == (100, 10_000, 30)


@pytest.mark.parametrize("for_handlers", [False, True])
def test_receives_are_waited_for(for_handlers):
    """T12."""
    receives = ReceiveQuota(threading.Condition(), 2, unless=lambda: False)
    assert [receives.start(), receives.start(), receives.start()] == [True, True, False]
    waiter = threading.Thread(target=receives.wait, args=[for_handlers, lambda: False])
    waiter.start()
    receives.answered(found=True)
    receives.answered(found=True)
    if for_handlers:
        receives.finished()
        assert waiter.is_alive()
        receives.finished()
    waiter.join(60)
    assert not waiter.is_alive()


def test_no_receive_is_started_once_one_found_nothing_or_the_time_is_over():
    """T13."""
    late = threading.Event()
    receives = ReceiveQuota(threading.Condition(), 100, unless=late.is_set)
    assert (receives.start(), receives.left) == (True, 99)
    receives.answered(found=False)
    assert (receives.start(), receives.left) == (False, 0)
    receives = ReceiveQuota(threading.Condition(), 100, unless=late.is_set)
    assert receives.start()
    late.set()
    assert (receives.start(), receives.left) == (False, 0)
