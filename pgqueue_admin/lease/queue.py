"""The lease queue's client: publish, claim, renew, finish, release; in its own sessions or in yours."""

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
MOST_NAME = 50  # handled_by is a column of the original table
ROUND = 1000  # messages per statement of expire and renotify

Seconds = float | timedelta


class Leases:
    """The queue's operations in one session, each one statement. Raises errors of ``dialects.errors``."""

    def __init__(self, name: str, store: LeaseStore, session: Connection | None = None):
        self.name = name
        self._store = store
        self._given = session
        self._handled_by = stored(name[:MOST_NAME])

    @property
    def _holder(self) -> str:
        """``thumbs, house-1, pid 4711``: the lock holder's name, for readers of the queue."""
        return stored(f"{self.name[:MOST_NAME]}, {machine()}, pid {os.getpid()}")

    def _session(self) -> AbstractContextManager[Connection]:
        assert self._given is not None
        return nullcontext(self._given)

    def is_installed(self) -> bool:
        """Whether the queue's tables exist, as this program needs them."""
        with self._session() as session:
            return self._store.is_installed(session)

    def publish(self, message: Any) -> int:
        """Insert a JSON-serializable message; return its id. Raises MessageRefused."""
        return self.publish_many([message])[0]

    def publish_many(self, messages: Iterable[Any]) -> list[int]:
        """All or none, in this order."""
        with self._session() as session:
            return self._store.publish(session, [payload.written(session, message) for message in messages])

    def claim(self, most: int = 1, lock_for: Seconds = LOCK_FOR, *, releases: int = 0) -> list[LeasedMessage]:
        """Lock at most ``most`` messages, oldest first; concurrent claims get others.

        ``releases``: up to which attempt an expired lock releases the message instead of archiving it.
        """
        if most < 1:
            raise ValueError(f"most is {most}: it must be 1 or more")
        with self._session() as session:
            claimed = self._store.claim(session, most, lock_seconds(lock_for), releases, self._holder)
            return [LeasedMessage(each) for each in claimed]

    def renew(self, lease: LeasedMessage, lock_for: Seconds = LOCK_FOR) -> bool:
        """Extend the lock to this time from now. False: it expired or another client holds it: leave the message
        alone."""
        return lease.token in self.renew_many([lease], lock_for)

    def renew_many(self, leases: Sequence[LeasedMessage], lock_for: Seconds = LOCK_FOR) -> set[str]:
        """Return the tokens of those still held."""
        with self._session() as session:
            return self._store.renew(session, [lease.key for lease in leases], lock_seconds(lock_for))

    def finish(
        self, lease: LeasedMessage, result: Result = "success", details: Any = None, *, archive_success: bool = True
    ) -> Ended | None:
        """Delete and archive the message at once. None: its lock is no longer this one, and nothing was done.

        ``details``: text, or any value as JSON; cut at 8 kB. The message ends as *lock_expired* if its lock had
        expired.
        """
        ended = self.finish_many([ending(lease, result, details)], archive_success=archive_success)
        return ended[0] if ended else None

    def finish_many(self, endings: Sequence[Ending], *, archive_success: bool = True) -> list[Ended]:
        """As ``finish``; messages no longer held are missing in the result."""
        with self._session() as session:
            return self._store.finish(session, endings, self._handled_by, machine(), archive_success)

    def release(self, lease: LeasedMessage, after: Seconds | datetime = 0) -> bool:
        """Return it to the queue: now, after a delay, or at a time (with a zone). False: it was not held."""
        if isinstance(after, datetime) and after.tzinfo is None:
            raise ValueError("after is a time without a zone")
        with self._session() as session:
            return self._store.release(session, lease.key, after if isinstance(after, datetime) else _seconds(after))

    def expire(self, most: int = ROUND) -> Expired:
        """Archive or release messages with expired locks; safe to run concurrently."""
        with self._session() as session:
            return self._store.expire(session, most, self._handled_by)

    def renotify(self, most: int = ROUND) -> int:
        """NOTIFY again for at most ``most`` unprocessed messages, the next ones at each call; return how many."""
        with self._session() as session:
            return self._store.renotify(session, most)

    def outlook(self) -> Outlook:
        """Seconds until there is something to claim, and to expire."""
        with self._session() as session:
            return self._store.outlook(session)


class LeaseQueue(Leases):
    """Thread-safe: each concurrent call has its own session. ``name``: recorded as the handler of messages."""

    def __init__(self, dsn: str, *, name: str = "lease client", answer_seconds: float = ANSWER_SECONDS):
        """``answer_seconds``: a statement without an answer for this long is aborted, with its session."""
        self.dialect = dialect_for(dsn)
        if self.dialect.leases is None:
            raise ValueError(f"{self.dialect.name} has no lease queue")
        self.store: LeaseStore = self.dialect.leases
        super().__init__(name, self.store)
        self.opening = Opening(self.dialect, dsn, name, answer_seconds)
        self._sessions = Sessions(self.opening.short)

    def within(self, connection: Any) -> Leases:
        """In your transaction, by a psycopg connection, which is neither committed nor rolled back.

        Messages published there arrive with your commit, together with your own data. Raises TypeError for anything
        else.
        """
        return self.on(self.dialect.borrow(connection))

    def on(self, session: Connection) -> Leases:
        """In one of our open sessions."""
        return Leases(self.name, self._store, session)

    def close(self) -> None:
        """Close idle sessions. Later calls open new ones."""
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
