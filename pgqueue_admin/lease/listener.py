"""A thread that listens on one channel and works in the same session; both recover after an outage."""

import os
import select
import threading
from contextlib import suppress
from functools import partial
from typing import Protocol

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession

PATIENCE = 1.0  # seconds that stop waits for a running statement


class ListenerWork(Protocol):
    def begun(self) -> None:
        """A new session listens: earlier notifications were missed."""

    def run_once(self, session: Connection, has_heard: bool) -> float:
        """Do the pending work; return the maximum seconds until the next turn."""

    @property
    def wants_to_hear(self) -> bool:
        """Whether a NOTIFY should start a turn now. Otherwise it waits for the next turn, which a poke starts."""


class Listener:
    """Any number of notifications since the last turn lead to one turn."""

    def __init__(self, name: str, channel: str, queue: LeaseQueue, work: ListenerWork, breaker: CircuitBreaker):
        self._channel, self._work, self._breaker = channel, work, breaker
        self._session = ReconnectingSession(partial(queue.opening.listening, channel))
        self.woken = 0  # how often a NOTIFY, or the end of the session, ended a wait
        self._poked, self._poker = os.pipe()
        self._pipe: tuple[int, ...] = (self._poked, self._poker)
        os.set_blocking(self._poker, False)
        self._poking = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """Start a turn now."""
        with self._poking, suppress(BlockingIOError):  # a full pipe wakes the thread anyway
            if self._pipe:
                os.write(self._poker, b"x")

    def ask_to_stop(self) -> None:
        """Start no further turn."""
        self._stopping.set()
        self.poke()

    def stop(self) -> None:
        """Wait until no turn is running. A statement that does not end within PATIENCE is aborted."""
        self.ask_to_stop()
        self._thread.join(PATIENCE)
        self._session.abort()
        self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Wait for the running turn; return whether it has ended."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._serve(self._session.fresh())
                except Exception as error:
                    if not self._stopping.is_set():
                        self._stopping.wait(self._breaker.failed(error))
        finally:
            self._session.close()
            with self._poking:  # the descriptor numbers are reused afterwards
                for end in self._pipe:
                    os.close(end)
                self._pipe = ()

    def _serve(self, session: Connection) -> None:
        session.listen(self._channel)
        self._work.begun()
        poll = select.poll()
        for file in (self._poked, session.fileno()):
            poll.register(file, select.POLLIN)
        while not self._stopping.is_set():
            # take all, also those received with results: each left over would cost another turn
            has_heard = bool(list(session.notifications(timeout=0)))
            rest = self._work.run_once(session, has_heard)
            if rest > 0:
                poll.modify(session.fileno(), select.POLLIN if self._work.wants_to_hear else 0)
                ready = dict(poll.poll(min(session.ask_every, rest) * 1000))
                self.woken += session.fileno() in ready
                if self._poked in ready:
                    os.read(self._poked, 4096)
