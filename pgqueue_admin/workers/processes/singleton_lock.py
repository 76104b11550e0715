"""Being the only one of a kind for a console database, for as long as a session there holds its lock."""

from contextlib import suppress

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import notify
from pgqueue_admin.workers.supervisor.advisory_lock import HostLock


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
