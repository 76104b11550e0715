"""NOTIFY from senders to receivers: a message is received at once instead of after the peek delay."""

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

APART_SECONDS = 0.002  # what is committed within it shares a NOTIFY; the first after a pause is told at once
RUSH_SECONDS = 0.02  # the same in a rush: receivers have enough to do until then
RUSH = 2_000  # messages a second
LONGEST_REST = 3600.0  # of a session that is never asked whether it lives; poll() takes no infinity
LAST_SECONDS = 1.0  # for what is still to be told when an endpoint stops

Heard = Callable[[], None]


def channel(dialect: Dialect, queue: Address) -> str:
    return _channel(dialect.canonical(queue))


@lru_cache(maxsize=4096)
def _channel(canonical: str) -> str:
    """A channel's name has 63 bytes and an address may have more."""
    return "pgqueue_" + hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def tell_with_commit(connection: Connection, dialect: Dialect, queues: Iterable[Address]) -> None:
    """Inside the caller's transaction: once for each queue, and not at all where it rolls back.

    For whoever writes seldom; see WakeUps for why senders do it otherwise.
    """
    if dialect.supports_notify:
        for name in {channel(dialect, queue) for queue in queues}:
            connection.notify(name)


class QueueNotifications:
    """One thread and one session of an endpoint: tells whose queues were sent to, and hears of its own.

    It tells after the commit and not inside it: the server lets one NOTIFY commit at a time, through the flush to disk.
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
        self._sent, self._counted_at = 0, 0.0  # messages since the last NOTIFY, more or less: counted without the lock
        self._listened: dict[str, Heard] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def notify(self, queues: set[Address], messages: int = 1) -> None:
        """So many were committed there. Costs the sender no round trip."""
        self._sent += messages
        if queues <= self._to_tell or not self._dialect.supports_notify:
            return  # what is still to be told will be told after this commit
        with self._lock:
            self._to_tell |= queues
            self._poke()

    def listen(self, queue: Address, heard: Heard) -> None:
        """Call ``heard`` when something was sent to the queue, and whenever it may have been without our hearing."""
        if self._dialect.supports_notify:
            with self._lock:
                self._listened[channel(self._dialect, queue)] = heard
                self._poke()

    def close(self) -> None:
        """What is still to be told is told, within LAST_SECONDS."""
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
        """Under the lock. The first one starts the thread."""
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
                except Exception as error:  # peeking goes on by its delay meanwhile
                    if not closing.is_set():
                        closing.wait(self._breaker.failed(error))
                if closing.is_set():
                    break
        finally:
            self._session.close()
            os.close(poked)

    def _serve(self, poked: int, closing: threading.Event) -> None:
        session, listening, told_at, apart = self._session.fresh(), set[str](), 0.0, 0.0
        session.disable_idle_timeout()  # also where it only tells: who was ended meanwhile would tell a second later
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
        """How long after this NOTIFY the next may be, by what was sent since this was last asked."""
        now, before = time.monotonic(), self._counted_at
        sent, self._sent, self._counted_at = self._sent, 0, now
        return RUSH_SECONDS if sent > RUSH * (now - before) else APART_SECONDS

    def _listen(self, session: Connection, listening: set[str]) -> None:
        for name, heard in list(self._listened.items()):
            if name not in listening:
                session.listen(name)
                listening.add(name)
                heard()  # what was sent until now was not heard

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
    """A pipe that is full has poked enough; one that nobody reads belongs to a thread that has just ended."""
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(poker, b"x")
