"""The statements that an endpoint sent, in order, from the server's own log."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL

_SAID = r"(?:LOG:  (?:statement|execute [^:]*)|DETAIL:  prepare): "  # the latter: statements executed by name
_ASKED = re.compile(_SAID + r"(?P<verb>delete from|with head as)")
_KINDS = {"delete from": "receive", "with head as": "peek"}
_INSTANT = len("2026-11-20 02:47:03.412")


class Asked(NamedTuple):
    at: datetime  # by the server's clock
    kind: str  # peek, receive


class StatementsLog:
    """Peeks and receives of one endpoint in one database, from the creation of this object."""

    def __init__(self, server: PostgreSQL, connection: Connection, endpoint: str, before: str = "pgqueue "):
        """``before``: the prefix of its sessions' names."""
        database = connection.value("select current_database()")
        connection.run(f"alter database {database} set log_statement = 'all'")
        name = re.escape(before + endpoint)
        self._mark = re.compile(rf"{name}(?: mover| wake-ups| outbox)?@{database} ")
        self._file: Path = server.home / "postgresql.log"
        self._begins = self._file.stat().st_size  # earlier lines are of other sessions, and many

    def asked(self) -> list[str]:
        return [each.kind for each in self.timed()]

    def asked_since(self, words: str) -> list[str]:
        """Like ``asked``, after the first statement with this beginning."""
        began = _beginning(words)
        later = dropwhile(lambda line: not began.search(line), self._lines())
        return [each.kind for each in _timed(later)]

    def timed(self) -> list[Asked]:
        return _timed(self._lines())

    def count(self, words: str) -> int:
        """Number of statements with this beginning, ignoring case."""
        began = _beginning(words)
        return sum(bool(began.search(line)) for line in self._lines())

    def _lines(self) -> list[str]:
        with self._file.open("rb") as file:
            file.seek(self._begins)
            lines = file.read().decode(errors="replace").splitlines()
        return [line for line in lines if self._mark.search(line)]


def _beginning(words: str) -> re.Pattern[str]:
    return re.compile(_SAID + words, re.IGNORECASE)


def _timed(lines: Iterable[str]) -> list[Asked]:
    found = ((line, _ASKED.search(line)) for line in lines)
    return [Asked(_instant(line), _KINDS[match["verb"]]) for line, match in found if match]


def _instant(line: str) -> datetime:
    return datetime.fromisoformat(line[:_INSTANT]).replace(tzinfo=UTC)
