"""NOTIFY from senders to receivers, so that a message is received at once, not after the peek delay."""

import hashlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.fork_safety import forgets_in_child
from pgqueue_admin.transport.sessions.reconnecting_session import Connect, ReconnectingSession

log = logging.getLogger("pgqueue_admin.transport")

APART_SECONDS = 0.002  # commits within it share a NOTIFY; the first after a pause is sent at once
RUSH_SECONDS = 0.02  # the same in a rush: receivers are busy until then
RUSH = 2_000  # messages a second
LONGEST_REST = 3600.0  # for a session without probes; poll() accepts no infinity
LAST_SECONDS = 1.0  # for pending notifications when an endpoint stops

Heard = Callable[[], None]


def channel(dialect: Dialect, queue: Address) -> str:
    return _channel(dialect.canonical(queue))


@lru_cache(maxsize=4096)
def _channel(canonical: str) -> str:
    """Hash the address: a channel's name has at most 63 bytes, an address may have more."""
    return "pgqueue_" + hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def tell_with_commit(connection: Connection, dialect: Dialect, queues: Iterable[Address]) -> None:
    """Send NOTIFY in the caller's transaction: once for each queue, and not after a rollback.

    For rare writes; see QueueNotifications for why senders do otherwise.
    """
    if dialect.supports_notify:
        for name in {channel(dialect, queue) for queue in queues}:
            connection.notify(name)


class QueueNotifications:
    """One thread and one session of an endpoint: notifies receivers of its sends, and listens for its own queues.

    NOTIFY follows the commit, in a transaction of its own: the server serializes commits with NOTIFY, including the
    flush to disk.
    """

    def __init__(self, name: str, dialect: Dialect, connect: Connect, breaker: CircuitBreaker):
        self._name = name
        self._dialect = dialect
        self._connect = connect
        self._breaker = breaker
        self.forget()
        forgets_in_child(self)

    def forget(self) -> None:
        self._session = ReconnectingSession(self._connect)
        self._lock = threading.Lock()
        self._to_tell: set[Address] = set()
        self._sent, self._counted_at = 0, 0.0  # messages since the last NOTIFY, approximately: counted without the lock
        self._listened: dict[str, Heard] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def notify(self, queues: set[Address], messages: int = 1) -> None:
        """Notify receivers of so many committed messages. Costs the sender no round trip."""
        self._sent += messages
        if queues <= self._to_tell or not self._dialect.supports_notify:
            return  # the pending NOTIFY will follow this commit
        with self._lock:
            self._to_tell |= queues
            self._poke()

    def listen(self, queue: Address, heard: Heard) -> None:
        """Call ``heard`` on each NOTIFY for the queue, and whenever one may have been missed."""
        if self._dialect.supports_notify:
            with self._lock:
                self._listened[channel(self._dialect, queue)] = heard
                self._poke()

    def close(self) -> None:
        """Stop, sending pending notifications within LAST_SECONDS."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._listened.clear()
            if thread is None:
                return
            self._closing.set()
            poker = self._poker
        _poke(poker)
        thread.join(LAST_SECONDS)
        self._session.abort()
        thread.join()
        os.close(poker)

    def _poke(self) -> None:
        """Wake the thread, starting it on first use. Called under the lock."""
        if self._thread is None:
            self._closing = threading.Event()
            poked, self._poker = os.pipe()
            os.set_blocking(self._poker, False)
            run = threading.Thread(
                target=self._run, args=[poked, self._closing], name=f"{self._name} wake", daemon=True
            )
            self._thread = run
            run.start()
        _poke(self._poker)

    def _run(self, poked: int, closing: threading.Event) -> None:
        try:
            while True:
                try:
                    self._serve(poked, closing)
                except Exception as error:  # until then, receivers peek by the peek delay
                    if not closing.is_set():
                        closing.wait(self._breaker.failed(error))
                if closing.is_set():
                    break
        finally:
            self._session.close()
            os.close(poked)

    def _serve(self, poked: int, closing: threading.Event) -> None:
        session, listening, told_at, apart = self._session.fresh(), set[str](), 0.0, 0.0
        session.disable_idle_timeout()  # also without listening: a session lost to it would delay a NOTIFY by a second
        poll = select.poll()
        for file in (poked, session.fileno()):
            poll.register(file, select.POLLIN)
        while True:
            self._listen(session, listening)
            if self._to_tell and (closing.is_set() or time.monotonic() - told_at >= apart):
                apart = self._apart()
                self._tell(session)
                told_at = time.monotonic()
            self._hear(session)
            self._breaker.succeeded()
            if closing.is_set():
                return
            if poked in dict(poll.poll(1000 * (apart if self._to_tell else min(session.ask_every, LONGEST_REST)))):
                os.read(poked, 4096)

    def _apart(self) -> float:
        """Least time until the next NOTIFY, by the number of messages since the last call."""
        now, before = time.monotonic(), self._counted_at
        sent, self._sent, self._counted_at = self._sent, 0, now
        return RUSH_SECONDS if sent > RUSH * (now - before) else APART_SECONDS

    def _listen(self, session: Connection, listening: set[str]) -> None:
        for name, heard in list(self._listened.items()):
            if name not in listening:
                session.listen(name)
                listening.add(name)
                heard()  # earlier notifications were missed

    def _tell(self, session: Connection) -> None:
        with self._lock:
            queues, self._to_tell = self._to_tell, set()
        for queue in queues:
            session.notify(channel(self._dialect, queue))

    def _hear(self, session: Connection) -> None:
        for name in {notification.channel for notification in session.notifications(timeout=0)}:
            if heard := self._listened.get(name):
                heard()


def _poke(poker: int) -> None:
    """Write to the wake-up pipe. A full one wakes anyway; one without reader belongs to a thread that just ended."""
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(poker, b"x")
