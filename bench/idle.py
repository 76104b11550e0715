"""What an endpoint asks while it has nothing to do, from the server's own log."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

_ASKED = re.compile(r"pgqueue Engine@.* (?:LOG:  (?:statement|execute [^:]*)|DETAIL:  prepare): (.*)")
_QUEUE = '"public"."Engine" '


class Log:
    def __init__(self, file: Path):
        self._file = file
        self._from = file.stat().st_size

    def statements_a_peek(self) -> float:
        """On its queue, between the first peek and the last; its delayed table is looked at besides, ever more rarely.

        Raises SystemExit where there are not two peeks.
        """
        with self._file.open(encoding="utf-8") as lines:
            lines.seek(self._from)
            found = (match[1] for match in map(_ASKED.search, lines) if match)
            asked = [statement for statement in found if _QUEUE in statement]
        peeks = [place for place, statement in enumerate(asked) if statement.startswith("with head as")]
        if len(peeks) < 2:
            raise SystemExit("The idle endpoint did not peek twice.")
        return (peeks[-1] - peeks[0]) / (len(peeks) - 1)


@contextmanager
def logged(server: PostgreSQL, dsn: str) -> Iterator[Log]:
    """Raises SystemExit where a peek would read the table instead of its index."""
    with postgresql().connect(dsn, for_handlers=True) as connection:
        peek = postgresql().queue.peek(table=Address("public", "Engine")).as_string(None)
        plan = "\n".join(each[0] for each in connection.all(f"explain {peek}"))
        if "Seq Scan" in plan:
            raise SystemExit(f"The peek reads its whole table:\n{plan}")
        database = connection.value("select current_database()")
        connection.run(f"alter database {database} set log_statement = 'all'")
        try:
            yield Log(server.home / "postgresql.log")
        finally:
            connection.run(f"alter database {database} reset log_statement")
