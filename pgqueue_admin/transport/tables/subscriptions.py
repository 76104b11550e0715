"""Subscriptions: the routing table that all endpoints of a system share (wire sheet 4)."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.table_fault import TableFault
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
        self._store = addressing.dialect.subscription_store(self.address)
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], tuple[float, list[Address]]] = {}

    def create(self, session: Session) -> None:
        self._store.create(session)

    def faults(self, session: Session) -> Iterator[TableFault]:
        return self._store.faults(session)

    def subscribe(self, session: Session, endpoint: str, queue: Address, topic: str) -> None:
        """An endpoint has one queue a topic: the newest. Other processes see it within ``CACHE_SECONDS``."""
        self._store.subscribe(session, endpoint, full_name(topic), self._addressing.canonical(queue))
        self._forget()

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        """Whatever its queue is; nothing happens where it is not subscribed."""
        self._store.unsubscribe(session, endpoint, full_name(topic))
        self._forget()

    def subscribers(self, session: Session, topics: list[str]) -> list[Address]:
        """Each queue once that wants one of ``topics``, as of at most ``CACHE_SECONDS`` ago."""
        key = tuple(topics)
        known_at, addresses = self._known.get(key, (None, []))
        if known_at is None or self._clock() - known_at >= CACHE_SECONDS:
            addresses = self._read(session, topics)
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

    def _read(self, session: Session, topics: list[str]) -> list[Address]:
        """Two spellings of one address are one queue."""
        found = map(self._resolved, self._store.subscribers(session, topics))
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
