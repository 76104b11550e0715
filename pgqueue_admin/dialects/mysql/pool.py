"""Looking sessions, each opened for one use (contract: dialects.base.Pool): whoever looks does so once in a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects.connect_breaker import ConnectBreaker
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.mysql.session import MySQLSession

SILENT_SECONDS = 2.0  # a server that says nothing for so long is down


class SessionPool:
    """While the server is silent, one caller probes and all others fail at once."""

    def __init__(self, connect: Callable[[], MySQLSession], dialect: Any):
        self._connect, self._dialect = connect, dialect
        self._breaker = ConnectBreaker(DatabaseDown, _told_again)

    @contextmanager
    def connection(self, answer_seconds: float | None = None) -> Iterator[MySQLSession]:
        """``answer_seconds`` is the pool's."""
        with self._breaker.attempt(self._connect) as session:
            session.dialect = self._dialect
            yield session

    def close(self) -> None:
        """Nothing is kept."""


def _told_again(said: str) -> DatabaseDown:
    """As the try before ended, whose words begin with the sentence."""
    return DatabaseDown(said.removeprefix(DatabaseDown().sentence))
