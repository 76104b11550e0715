"""A SQL Server of your own: ``PGQUEUE_TEST_MSSQL_DSN=mssql://user:password@host/master``.

Each run creates a database there and drops it. Without the variable its tests are not collected, rather than skipped;
the last lines of the run then say that SQL Server is covered by comparing SQL text.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.sqlserver.dialect import sqlserver
from tests.waiting import until

VARIABLE = "PGQUEUE_TEST_MSSQL_DSN"
DSN = os.environ.get(VARIABLE, "")
METHODS = ["mssql", "mssql_range"] if DSN else []  # how peek counts (S5): by count, and by range
ONE = METHODS[:1]

_EMPTY = """declare @drop nvarchar(max) = N'';
select @drop = @drop + concat(N'drop table ', quotename(schema_name(schema_id)), N'.', quotename(name), N';')
from sys.tables;
exec sys.sp_executesql @drop"""


def said() -> str:
    """The summary for the last lines of a run."""
    if DSN:
        return f"SQL Server: asked at {urlsplit(DSN).hostname}, by the tests named mssql."
    return f"SQL Server: held by text, not run. {VARIABLE}=mssql://user:password@host/master runs it."


class MSSQL:
    """``database``: the DSN of an empty database."""

    def __init__(self) -> None:
        self._name = f"pgqueue_test_{uuid.uuid4().hex[:12]}"
        parts = urlsplit(DSN)
        self._dsn = urlunsplit(parts._replace(path=f"/{self._name}"))

    def create(self) -> None:
        until(self._is_created, what=f"database {self._name} is made")

    def _is_created(self) -> bool:
        """Whether the server created it: it creates one database at a time and refuses others with error 1807."""
        try:
            self._as_admin(f"create database {self._name}")
        except DatabaseError as error:
            if "(1807)" not in error.detail:
                raise
            return False
        return True

    def drop(self) -> None:
        self._as_admin(f"alter database {self._name} set single_user with rollback immediate")
        self._as_admin(f"drop database {self._name}")

    @contextmanager
    def database(self, method: str = "mssql") -> Iterator[str]:
        with sqlserver().connect(self._dsn) as session:
            session.run(_EMPTY)
        by_range = f"{'&' if '?' in self._dsn else '?'}peek_method=range"
        yield self._dsn + (by_range if method == "mssql_range" else "")

    def _as_admin(self, text: str) -> None:
        """Run outside a transaction; our sessions always begin one."""
        with sqlserver().connect(DSN, connect_timeout=15) as session:
            raw: Any = session.raw
            raw.cursor().execute("set implicit_transactions off")
            raw.cursor().execute(text)


@contextmanager
def mssql() -> Iterator[MSSQL]:
    server = MSSQL()
    server.create()
    try:
        yield server
    finally:
        server.drop()
