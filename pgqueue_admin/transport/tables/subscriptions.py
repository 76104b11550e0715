"""Subscriptions: the table that all endpoints of a system share (wire sheet 4)."""

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
    """Subscribers by topic, cached for five seconds like the original."""

    def __init__(self, addressing: Addressing, table: str = "", clock: Callable[[], float] = time.monotonic):
        """``table``: another address of the table. ``schemas`` of queues do not apply to it."""
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
        """Subscribe; the newest queue of endpoint and topic counts. Others see it within ``CACHE_SECONDS``."""
        self._store.subscribe(session, endpoint, full_name(topic), self._addressing.canonical(queue))
        self._forget()

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        """Delete the subscription, whatever its queue; no effect without one."""
        self._store.unsubscribe(session, endpoint, full_name(topic))
        self._forget()

    def subscribers(self, session: Session, topics: list[str]) -> list[Address]:
        """Queues subscribed to any of ``topics``, each once, at most ``CACHE_SECONDS`` old."""
        key = tuple(topics)
        known_at, addresses = self._known.get(key, (None, []))
        if known_at is None or self._clock() - known_at >= CACHE_SECONDS:
            addresses = self._read(session, topics)
            with self._lock:
                self._remember(key, addresses)
        return addresses

    def _remember(self, key: tuple[str, ...], addresses: list[Address]) -> None:
        """Add as the newest, and drop expired entries: ever new types would fill the memory."""
        now = self._clock()
        self._known.pop(key, None)
        self._known[key] = now, addresses
        while (oldest := next(iter(self._known))) != key and now - self._known[oldest][0] >= CACHE_SECONDS:
            del self._known[oldest]

    def _read(self, session: Session, topics: list[str]) -> list[Address]:
        """Query the table; spellings of the same address count once."""
        found = map(self._resolved, self._store.subscribers(session, topics))
        return [address for address in dict.fromkeys(found) if address]

    def _resolved(self, address: str) -> Address | None:
        """The address; None if unreadable: no endpoint can receive there, and the others still get their copies."""
        try:
            return self._addressing.resolve(address)
        except AddressUnreadable as error:
            log.warning("A subscription in %s is left out: %s. Delete its row.", self.address, error)
            return None

    def _forget(self) -> None:
        with self._lock:
            self._known.clear()
