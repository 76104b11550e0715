"""A session that belongs to the caller: we execute in it, and never end its transaction."""

from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from psycopg.types.array import ListBinaryDumper

from pgqueue_admin.dialects.postgresql.session import Session


class ExternalSession(Session):
    """Uses plain cursors, whatever the caller has configured. The caller's time zone and search path do not matter."""

    def _cursor(self) -> psycopg.Cursor[Any]:
        cursor = psycopg.Cursor(self.raw, row_factory=namedtuple_row)
        # as text, bytes in a list would change if the caller has standard_conforming_strings off
        cursor.adapters.register_dumper(list, ListBinaryDumper)
        return cursor

    def transaction(self) -> AbstractContextManager[Session]:
        """A savepoint in the caller's transaction. Without autocommit, a first statement begins that transaction."""
        if self.raw.info.transaction_status == TransactionStatus.IDLE and not self.raw.autocommit:
            self.run("select")
        return super().transaction()


def external_session(raw: Any) -> ExternalSession:
    """Raises TypeError for anything but a psycopg connection."""
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"a psycopg.Connection is needed to send within it, and this is {type(raw).__name__}")
    return ExternalSession(raw)
