"""Advisory locks in the console's database: one supervisor per host, one process per singleton role, one leader."""

import time
from contextlib import suppress

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import notify
from pgqueue_admin.models.raw_sql import console_sql

# Session-level advisory locks on the console's database: one supervisor per host, one leader.
_LOCKS = console_sql.advisory_locks
PATIENCE_AT_START = 3.0  # seconds: a killed predecessor's session may live a moment longer
PATIENCE_AFTER_OUTAGE = 60.0  # seconds: the server may first have to time out our own former session


class SessionLock:
    def __init__(self, name: str):
        self._name = {"name": name}
        self._session: int | None = None  # backend number of the session that last took it
        self.held = False

    def use(self, connection: Connection) -> None:
        """Use a new session, which holds no lock yet."""
        self._connection, self.held = connection, False

    def take(self) -> bool:
        """Try once, unless it is held already."""
        if not self.held:
            taken = self._connection.one(_LOCKS.try_lock(), self._name)
            self.held = bool(taken and taken.taken)
            if self.held and taken:
                self._session = taken.session
            else:
                self._end_former()
        return self.held

    def _end_former(self) -> None:
        """End our former session: a proxy on the way may keep it, and its lock, open for ever."""
        if self._session is not None:
            self._connection.value(_LOCKS.end_former(holder=_LOCKS.holder), {**self._name, "session": self._session})

    def release(self) -> None:
        """Unlock now: a closed session ends a moment later, and only then releases its locks."""
        held, self.held = self.held, False
        if held:
            self._connection.run(_LOCKS.unlock(), self._name)

    def holder(self) -> str:
        return self._connection.value(_LOCKS.lock_holder(holder=_LOCKS.holder), self._name) or "another supervisor"


class HostLock(SessionLock):
    """Gives up when its patience ends; ``refused`` then names the holder."""

    def __init__(self, host: str):
        super().__init__(host)
        self.refused: str | None = None
        self._patience = PATIENCE_AT_START
        self._since: float | None = None

    def take(self) -> bool:
        if super().take():
            self._patience, self._since = PATIENCE_AFTER_OUTAGE, None
        elif self._impatient():
            self.refused = self.holder()
        return self.held

    def _impatient(self) -> bool:
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > self._patience


# Locks of singletons: one process of a role per console database, while its session holds the lock.
class SingletonLock:
    def __init__(self, name: str):
        self._name, self._lock = name, HostLock(f"sole {name}")  # a host may be called sampler
        self._connection: Connection | None = None

    def mine(self) -> bool:
        """Whether we hold the lock; tries to take it if not. Raises DatabaseDown, and then it is no longer ours."""
        if self._connection is None or self._connection.closed:
            self._connection = notify.listen(application_name=f"pgqueue {self._name}")
            self._lock.use(self._connection)
        for _ in self._connection.notifications(0):  # detects a session that was ended
            pass
        return self._lock.held or self._lock.take()

    def resign(self) -> None:
        """Release the lock, so that the next process can take it at once."""
        with suppress(DatabaseError):
            self._lock.release()
        self.let_go()

    def let_go(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None
