"""The client of the lease queue: publish, claim, renew, finish, release; in sessions of its own or in yours."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.dialects.lease_store import Ended, Ending, Expired, LeaseStore, Outlook, Result
from pgqueue_admin.lease import payload
from pgqueue_admin.lease.endings import ending, stored
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.transport.sessions.reconnecting_session import Sessions
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS, Opening
from pgqueue_admin.transport.wire.host_info import machine

LOCK_FOR = timedelta(minutes=1)
MOST_NAME = 50  # handled_by is the original's column
ROUND = 1000  # messages a statement, of those that nobody asked for one by one

Seconds = float | timedelta


class Leases:
    """What can be done with the queue in one session, each in one statement. Raises errors of ``dialects.errors``."""

    def __init__(self, name: str, store: LeaseStore, session: Connection | None = None):
        self.name = name
        self._store = store
        self._given = session
        self._handled_by = stored(name[:MOST_NAME])

    @property
    def _holder(self) -> str:
        """``thumbs, house-1, pid 4711``: who has what it claims, to readers of the queue."""
        return stored(f"{self.name[:MOST_NAME]}, {machine()}, pid {os.getpid()}")

    def _session(self) -> AbstractContextManager[Connection]:
        assert self._given is not None
        return nullcontext(self._given)

    def is_installed(self) -> bool:
        """Whether the queue's tables are there, as this program knows them."""
        with self._session() as session:
            return self._store.is_installed(session)

    def publish(self, message: Any) -> int:
        """Insert a message, of anything that is JSON; its id. Raises MessageRefused."""
        return self.publish_many([message])[0]

    def publish_many(self, messages: Iterable[Any]) -> list[int]:
        """All or none, in this order."""
        with self._session() as session:
            return self._store.publish(session, [payload.written(session, message) for message in messages])

    def claim(self, most: int = 1, lock_for: Seconds = LOCK_FOR, *, releases: int = 0) -> list[LeasedMessage]:
        """Lock so many messages at most, oldest first; whoever asks at the same time gets others.

        ``releases``: up to which attempt a message comes back, instead of being archived, when this lock expires.
        """
        if most < 1:
            raise ValueError(f"most is {most}: it must be 1 or more")
        with self._session() as session:
            claimed = self._store.claim(session, most, lock_seconds(lock_for), releases, self._holder)
            return [LeasedMessage(each) for each in claimed]

    def renew(self, lease: LeasedMessage, lock_for: Seconds = LOCK_FOR) -> bool:
        """Have the lock end so long from now. False: it was over, or is somebody else's: leave the message alone."""
        return lease.token in self.renew_many([lease], lock_for)

    def renew_many(self, leases: Sequence[LeasedMessage], lock_for: Seconds = LOCK_FOR) -> set[str]:
        """The tokens of those that are still held."""
        with self._session() as session:
            return self._store.renew(session, [lease.key for lease in leases], lock_seconds(lock_for))

    def finish(
        self, lease: LeasedMessage, result: Result = "success", details: Any = None, *, archive_success: bool = True
    ) -> Ended | None:
        """Delete and archive it at once. None: its lock is no longer this one, and nothing was done.

        ``details``: text, or anything as JSON; cut at 8 kB. It ends as *lock_expired* where its lock was over.
        """
        ended = self.finish_many([ending(lease, result, details)], archive_success=archive_success)
        return ended[0] if ended else None

    def finish_many(self, endings: Sequence[Ending], *, archive_success: bool = True) -> list[Ended]:
        """As ``finish``; those that were no longer held are missing in what comes back."""
        with self._session() as session:
            return self._store.finish(session, endings, self._handled_by, machine(), archive_success)

    def release(self, lease: LeasedMessage, after: Seconds | datetime = 0) -> bool:
        """Give it back for another go: at once, after a time, or at a time (with a zone). False: it was not held."""
        if isinstance(after, datetime) and after.tzinfo is None:
            raise ValueError("after is a time without a zone")
        with self._session() as session:
            return self._store.release(session, lease.key, after if isinstance(after, datetime) else _seconds(after))

    def expire(self, most: int = ROUND) -> Expired:
        """Archive or release messages whose locks are over, from as many places at once as you like."""
        with self._session() as session:
            return self._store.expire(session, most, self._handled_by)

    def renotify(self, most: int = ROUND) -> int:
        """NOTIFY again for unprocessed messages, so many at most, the next ones at each call; how many."""
        with self._session() as session:
            return self._store.renotify(session, most)

    def outlook(self) -> Outlook:
        """In how many seconds there is something to claim, and to expire."""
        with self._session() as session:
            return self._store.outlook(session)


class LeaseQueue(Leases):
    """From any thread: each that asks at the same moment has a session. ``name``: who handled a message."""

    def __init__(self, dsn: str, *, name: str = "lease client", answer_seconds: float = ANSWER_SECONDS):
        """``answer_seconds``: a statement without an answer for so long is given up, with its session."""
        self.dialect = dialect_for(dsn)
        if self.dialect.leases is None:
            raise ValueError(f"{self.dialect.name} has no lease queue")
        self.store: LeaseStore = self.dialect.leases
        super().__init__(name, self.store)
        self.opening = Opening(self.dialect, dsn, name, answer_seconds)
        self._sessions = Sessions(self.opening.short)

    def within(self, connection: Any) -> Leases:
        """In a transaction of yours: a psycopg connection, which is neither committed nor rolled back.

        What is published there comes with your commit, together with your own data. Raises TypeError for anything else.
        """
        return self.on(self.dialect.borrow(connection))

    def on(self, session: Connection) -> Leases:
        """In a session of ours that is open already."""
        return Leases(self.name, self._store, session)

    def close(self) -> None:
        """Its idle sessions. Who asks afterwards gets new ones."""
        self._sessions.close()

    def _session(self) -> AbstractContextManager[Connection]:
        return self._sessions.one()


def lock_seconds(lock_for: Seconds) -> float:
    seconds = _seconds(lock_for)
    if not 0 < seconds <= timedelta(days=365).total_seconds():
        raise ValueError(f"a lock of {seconds:g} s: it must be more than 0, and at most a year")
    return seconds


def _seconds(span: Seconds) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)
