"""Runs one query over many tables, several per round trip; an unreadable table delays none of the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError

AT_ONCE = 20  # per round trip; their tables stay locked against ALTER until it ends

Asked = tuple[Any, Params]
Answer = list[Row] | DatabaseError


def ask(connection: Connection, asked: Sequence[Asked]) -> Iterator[Answer]:
    """The rows of each query, or its error. Raises DatabaseDown."""
    for start in range(0, len(asked), AT_ONCE):
        some = asked[start : start + AT_ONCE]
        answers = _in_company(connection, some) if len(some) > 1 else []
        yield from answers or [_alone(connection, each) for each in some]


def _in_company(connection: Connection, asked: Sequence[Asked]) -> Sequence[Answer]:
    """All or none."""
    try:
        return connection.batch(asked)
    except DatabaseDown:
        raise
    except DatabaseError:
        return []


def _alone(connection: Connection, asked: Asked) -> Answer:
    try:
        return connection.all(*asked)
    except DatabaseDown:
        raise
    except DatabaseError as error:
        return error


# Time limits of one reading, overriding the session's.
@contextmanager
def within(connection: Connection, seconds: float) -> Iterator[None]:
    """A transaction whose statements raise TimedOut after ``seconds`` each, lock waits included.

    If the server cannot limit statements, the session's limit applies.
    """
    with connection.transaction():
        if connection.dialect.limits_statements:
            connection.one(connection.dialect.monitor.within(), {"ms": max(1, round(seconds * 1000))})
        yield
