"""With one receiver, each producer's messages are handled in the order of their commits (T7)."""

from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

PING = "Shop.Ping"
PRODUCERS = 3
STEPS = st.lists(st.tuples(st.integers(0, PRODUCERS - 1), st.booleans()), min_size=4, max_size=24)


class Rollback(Exception):
    """Raised in a producer's transaction."""


class Producer:
    """One message per transaction, open until the producer's next turn."""

    def __init__(self, number, endpoint, session):
        self.number, self.committed = number, []
        self._endpoint, self._session = endpoint, session
        self._sent, self._open = 0, None

    def run_once(self, keeps):
        if self._open is None:
            self._open = ExitStack()
            self._open.enter_context(self._session.transaction())
            message = [self.number, self._sent]
            self._endpoint.within(self._session.raw).send("Sales", message, type=PING)
            self._sent += 1
        else:
            self._end(keeps)

    def _end(self, keeps):
        transaction, self._open = self._open, None
        try:
            with transaction:
                if not keeps:
                    raise Rollback
        except Rollback:
            return
        self.committed.append(self._sent - 1)

    def close(self):
        if self._open:
            self._end(True)


@pytest.mark.parametrize("batch_size", [1, 3])
@settings(max_examples=12)
@given(steps=STEPS, failing=st.sets(st.integers(0, 8)))
def test_under_interleaved_rollbacks_and_retries(endpoint, handlers, connect, batch_size, steps, failing):
    """Producers commit and roll back in turns, and some messages fail twice before they succeed."""
    handled, tried = [], []
    handlers._by_type.clear()

    @handlers.handle(PING)
    def ping(message, context):
        tried.append(message)
        if message[1] in failing and tried.count(message) < 3:
            raise RuntimeError
        handled.append(message)

    endpoint.apply(replace(QUICK, concurrency=1, batch_size=batch_size))
    producers = [Producer(number, endpoint, connect(endpoint.dsn)) for number in range(PRODUCERS)]
    endpoint.start()
    try:
        for number, keeps in steps:
            producers[number].run_once(keeps)
        for producer in producers:
            producer.close()
        until(lambda: not rows(endpoint.dsn, "Sales"), 30)
    finally:
        endpoint.stop()
    for producer in producers:
        assert [place for number, place in handled if number == producer.number] == producer.committed
