"""A session that belongs to the caller: we execute in it, and end nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from psycopg.types.array import ListBinaryDumper

from pgqueue_admin.dialects.postgresql.session import Session


class Borrowed(Session):
    """Whatever cursors the caller has set up for himself, ours are plain. His zone and search path do not matter."""

    def _cursor(self) -> psycopg.Cursor[Any]:
        cursor = psycopg.Cursor(self.raw, row_factory=namedtuple_row)
        # as text, bytes in a list would be others where his standard_conforming_strings are off
        cursor.adapters.register_dumper(list, ListBinaryDumper)
        return cursor

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A savepoint in his transaction; where the first statement will begin one, that is his too."""
        if self.raw.info.transaction_status == TransactionStatus.IDLE and not self.raw.autocommit:
            yield self
        else:
            with super().transaction():
                yield self


def borrowed(raw: Any) -> Borrowed:
    """Raises TypeError for what is no open psycopg connection."""
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"a psycopg.Connection is needed to send within it, and this is {type(raw).__name__}")
    return Borrowed(raw)
