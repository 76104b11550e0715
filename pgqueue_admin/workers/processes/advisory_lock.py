"""Advisory locks in the console's database: one supervisor per host, one process per singleton role, one leader."""

import time
from contextlib import suppress

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import notify
from pgqueue_admin.models.raw_sql import console_sql

# One supervisor per host, one leader of all: advisory locks of the session on the console's database.
_LOCKS = console_sql.advisory_locks
PATIENCE_AT_START = 3.0  # a killed predecessor's session may live a moment longer
PATIENCE_AFTER_OUTAGE = 60.0  # our own former session may have to time out on the server first


class SessionLock:
    def __init__(self, name: str):
        self._name = {"name": name}
        self._session: int | None = None  # in which it was taken last, by the server's number
        self.held = False

    def use(self, connection: Connection) -> None:
        """A new session holds nothing yet."""
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
        """What is between us and the server may keep our own former session open, and its lock, for ever."""
        if self._session is not None:
            self._connection.value(_LOCKS.end_former(holder=_LOCKS.holder), {**self._name, "session": self._session})

    def release(self) -> None:
        """At once: a session that is closed ends a moment later, and its locks with it."""
        held, self.held = self.held, False
        if held:
            self._connection.run(_LOCKS.unlock(), self._name)

    def holder(self) -> str:
        return self._connection.value(_LOCKS.lock_holder(holder=_LOCKS.holder), self._name) or "another supervisor"


class HostLock(SessionLock):
    """Who tries longer than patience allows is refused, and told who has it."""

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


# Being the only one of a kind for a console database, for as long as a session there holds its lock.
class SingletonLock:
    def __init__(self, name: str):
        self._name, self._lock = name, HostLock(f"sole {name}")  # a host may be called sampler: its supervisor has that
        self._connection: Connection | None = None

    def mine(self) -> bool:
        """Whether we are it, asking again where we are not. Raises DatabaseDown; then we are it no longer."""
        if self._connection is None or self._connection.closed:
            self._connection = notify.listen(application_name=f"pgqueue {self._name}")
            self._lock.use(self._connection)
        for _ in self._connection.notifications(0):  # notices a session that was ended
            pass
        return self._lock.held or self._lock.take()

    def resign(self) -> None:
        """In peace: the next one may be it from now on."""
        with suppress(DatabaseError):
            self._lock.release()
        self.let_go()

    def let_go(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None
