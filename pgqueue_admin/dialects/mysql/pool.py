"""Monitoring sessions, opened anew for each of the rare uses (contract: dialects.base.Pool)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects.connect_breaker import ConnectBreaker
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.mysql.session import MySQLSession

SILENT_SECONDS = 2.0  # a server silent for so long is down


class SessionPool:
    """While the server is unresponsive, one caller probes and all others fail at once."""

    def __init__(self, connect: Callable[[], MySQLSession], dialect: Any):
        self._connect, self._dialect = connect, dialect
        self._breaker = ConnectBreaker(DatabaseDown, _told_again)

    @contextmanager
    def connection(self, answer_seconds: float | None = None) -> Iterator[MySQLSession]:
        """``answer_seconds`` is ignored: the pool's applies."""
        with self._breaker.attempt(self._connect) as session:
            session.dialect = self._dialect
            yield session

    def close(self) -> None:
        """No effect: no session is kept."""


def _told_again(said: str) -> DatabaseDown:
    """The error of the last attempt again, without doubling its sentence."""
    return DatabaseDown(said.removeprefix(DatabaseDown().sentence))
