"""Who wants which events: the routing table all endpoints of a system share (wire sheet 4)."""

import logging
import threading
import time
from collections.abc import Callable

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.transport.tables import table_exists
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.type_names import full_name

log = logging.getLogger("pgqueue_admin.transport")

TABLE = "SubscriptionRouting"
CACHE_SECONDS = 5.0


class Subscriptions:
    """Subscribers by topic, remembered for five seconds as the original does."""

    def __init__(self, addressing: Addressing, table: str = "", clock: Callable[[], float] = time.monotonic):
        """``table``: its address where it is another. A schema given for a queue of its name has no say."""
        self.address = addressing.dialect.parse_address(table or TABLE, addressing.schema)
        self._addressing = addressing
        self._sql = addressing.dialect.subscription
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], tuple[float, list[Address]]] = {}

    def create(self, connection: Connection) -> None:
        table_exists.create(connection, self._addressing.dialect, self.address, self._sql.create(table=self.address))

    def subscribe(self, connection: Connection, endpoint: str, queue: Address, topic: str) -> None:
        """An endpoint has one queue a topic: the newest. Other processes see it within ``CACHE_SECONDS``."""
        row = {"queueaddress": self._addressing.canonical(queue), "endpoint": endpoint, "topic": full_name(topic)}
        connection.run(self._sql.subscribe(table=self.address), row)
        self._forget()

    def unsubscribe(self, connection: Connection, endpoint: str, topic: str) -> None:
        """Whatever its queue is; nothing happens where it is not subscribed."""
        connection.run(self._sql.unsubscribe(table=self.address), {"endpoint": endpoint, "topic": full_name(topic)})
        self._forget()

    def subscribers(self, connection: Connection, topics: list[str]) -> list[Address]:
        """Each queue once that wants one of ``topics``, as of at most ``CACHE_SECONDS`` ago."""
        key = tuple(topics)
        known_at, addresses = self._known.get(key, (None, []))
        if known_at is None or self._clock() - known_at >= CACHE_SECONDS:
            addresses = self._read(connection, topics)
            with self._lock:
                self._remember(key, addresses)
        return addresses

    def _remember(self, key: tuple[str, ...], addresses: list[Address]) -> None:
        """The newest last. What is too old to be used goes, or who publishes ever new types would fill the memory."""
        now = self._clock()
        self._known.pop(key, None)
        self._known[key] = now, addresses
        while (oldest := next(iter(self._known))) != key and now - self._known[oldest][0] >= CACHE_SECONDS:
            del self._known[oldest]

    def _read(self, connection: Connection, topics: list[str]) -> list[Address]:
        """Two spellings of one address are one queue."""
        rows = connection.all(self._sql.subscribers(table=self.address), {"topics": topics})
        found = (self._resolved(row.queueaddress) for row in rows)
        return [address for address in dict.fromkeys(found) if address]

    def _resolved(self, address: str) -> Address | None:
        """None: no endpoint could ever receive there, and all others are still to get theirs."""
        try:
            return self._addressing.resolve(address)
        except AddressUnreadable as error:
            log.warning("A subscription in %s is left out: %s. Delete its row.", self.address, error)
            return None

    def _forget(self) -> None:
        with self._lock:
            self._known.clear()
