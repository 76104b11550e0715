"""What an endpoint asked the server, in order, from the server's own log."""

import re
from pathlib import Path

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL

_ASKED = re.compile(r"LOG:  (?:statement|execute [^:]*): (?P<verb>delete from|with head as)")
_KINDS = {"delete from": "receive", "with head as": "peek"}


class StatementsLog:
    """Peeks and receives of one endpoint in one database, from the moment this is made."""

    def __init__(self, server: PostgreSQL, connection: Connection, endpoint: str):
        database = connection.value("select current_database()")
        connection.run(f"alter database {database} set log_statement = 'all'")
        self._mark = f"pgqueue {endpoint}@{database} "
        self._file: Path = server.home / "postgresql.log"

    def asked(self) -> list[str]:
        lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        found = (_ASKED.search(line) for line in lines if self._mark in line)
        return [_KINDS[match["verb"]] for match in found if match]
