"""An observer that records events, and readers of queue tables."""

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.addressing import canonical
from pgqueue_admin.transport import Endpoint, IncomingMessage


class Spy:
    """Implements transport.ports.Observer."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.ttbrs: dict[str, timedelta | None] = {}
        self.errors: list[BaseException] = []
        self.expired_types: list[str] = []
        self.hands: dict[int, IncomingMessage] = {}
        self.most_in_hand = 0
        self.critical_times: list[float] = []
        self.processing_times: list[float] = []
        self._lock = threading.Lock()

    def received(self, message: IncomingMessage) -> None:
        self._count("received")
        self.ttbrs[message.type] = message.time_to_be_received

    def handled(self, seconds: float) -> None:
        self.processing_times.append(seconds)
        self._count("handled")

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)
        self._count("failed")

    def retried(self) -> None:
        self._count("retried")

    def expired(self, type: str) -> None:
        self.expired_types.append(type)
        self._count("expired")

    def duplicate(self) -> None:
        self._count("duplicate")

    def in_flight(self, slot: int, message: IncomingMessage | None) -> None:
        with self._lock:
            if message is None:
                self.hands.pop(slot, None)
            else:
                self.hands[slot] = message
            self.most_in_hand = max(self.most_in_hand, len(self.hands))

    def critical_time(self, seconds: float) -> None:
        self.critical_times.append(seconds)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def finished(endpoint: Endpoint) -> None:
    """Stop the endpoint: messages in flight are committed and counted, and nothing changes afterwards.

    A row is visible once it is committed, but counts and log lines of an attempt come after its commit or rollback.
    """
    assert endpoint.stop()


_COLUMNS = "id, expires::text, headers, body, seq"  # a column may hold times that Python cannot


def rows(dsn: str, table: str, schema: str = "public") -> list[Any]:
    """The rows of a queue table, in order."""
    with postgresql().connect(dsn, for_handlers=True) as connection:
        return connection.all(f"select {_COLUMNS} from {canonical(Address(schema, table))} order by seq")


def insert(dsn: str, table: str, headers: str, body: bytes | None = b"{}", schema: str = "public") -> Any:
    """Insert a row as a foreign sender would. Return its id."""
    statement = f"insert into {canonical(Address(schema, table))} (id, headers, body)"
    with postgresql().connect(dsn, for_handlers=True) as connection:
        return connection.value(f"{statement} values (gen_random_uuid(), %s, %s) returning id", [headers, body])
