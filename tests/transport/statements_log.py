"""What an endpoint asked the server, in order, from the server's own log."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL

_ASKED = re.compile(r"LOG:  (?:statement|execute [^:]*): (?P<verb>delete from|with head as)")
_KINDS = {"delete from": "receive", "with head as": "peek"}
_INSTANT = len("2026-11-20 02:47:03.412")


class Asked(NamedTuple):
    at: datetime  # by the server's clock
    kind: str  # peek, receive


class StatementsLog:
    """Peeks and receives of one endpoint in one database, from the moment this is made."""

    def __init__(self, server: PostgreSQL, connection: Connection, endpoint: str):
        database = connection.value("select current_database()")
        connection.run(f"alter database {database} set log_statement = 'all'")
        self._mark = f"pgqueue {endpoint}@{database} "
        self._file: Path = server.home / "postgresql.log"

    def asked(self) -> list[str]:
        return [each.kind for each in self.timed()]

    def timed(self) -> list[Asked]:
        found = ((line, _ASKED.search(line)) for line in self._lines())
        return [Asked(_instant(line), _KINDS[match["verb"]]) for line, match in found if match]

    def count(self, words: str) -> int:
        """How many statements began so, in any case."""
        began = re.compile(rf"LOG:  (?:statement|execute [^:]*): {words}", re.IGNORECASE)
        return sum(bool(began.search(line)) for line in self._lines())

    def _lines(self) -> list[str]:
        lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if self._mark in line]


def _instant(line: str) -> datetime:
    return datetime.fromisoformat(line[:_INSTANT]).replace(tzinfo=UTC)
