"""A thread that listens on one channel and works in the session that it listens in; both come back after an outage."""

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

PATIENCE = 1.0  # seconds for a statement under way, when it is to stop


class ListenerWork(Protocol):
    def begun(self) -> None:
        """A new session listens: what came before was not heard."""

    def run_once(self, session: Connection, has_heard: bool) -> float:
        """Do what there is; the most seconds until the next turn."""

    @property
    def wants_to_hear(self) -> bool:
        """Whether a NOTIFY would tell it anything now. Else it is left until the next turn, which a poke brings."""


class Listener:
    """However many NOTIFY came until a turn, it is one turn that answers them."""

    def __init__(self, name: str, channel: str, queue: LeaseQueue, work: ListenerWork, breaker: CircuitBreaker):
        self._channel, self._work, self._breaker = channel, work, breaker
        self._session = ReconnectingSession(partial(queue.opening.listening, channel))
        self.woken = 0  # how often a NOTIFY, or the end of the session, ended a rest
        self._poked, self._poker = os.pipe()
        self._pipe: tuple[int, ...] = (self._poked, self._poker)
        os.set_blocking(self._poker, False)
        self._poking = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """Have a turn now."""
        with self._poking, suppress(BlockingIOError):  # a full pipe has poked enough
            if self._pipe:
                os.write(self._poker, b"x")

    def ask_to_stop(self) -> None:
        """No other turn begins."""
        self._stopping.set()
        self.poke()

    def stop(self) -> None:
        """No turn is under way when this returns: a statement without an answer is given up."""
        self.ask_to_stop()
        self._thread.join(PATIENCE)
        self._session.abort()
        self._thread.join()

    def wait(self, seconds: float) -> bool:
        """For the turn that is under way; whether it is over."""
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
            with self._poking:  # what has its number afterwards is somebody else's
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
            # all, also those that came with answers: each that is left behind would cost a turn of its own
            has_heard = bool(list(session.notifications(timeout=0)))
            rest = self._work.run_once(session, has_heard)
            if rest > 0:
                poll.modify(session.fileno(), select.POLLIN if self._work.wants_to_hear else 0)
                ready = dict(poll.poll(min(session.ask_every, rest) * 1000))
                self.woken += session.fileno() in ready
                if self._poked in ready:
                    os.read(self._poked, 4096)
