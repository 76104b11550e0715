"""Runs one query over many tables, several per round trip; a table that cannot be read holds up none of the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError

AT_ONCE = 20  # a round trip; all of them stay locked against their owners' ALTER until its end

Asked = tuple[Any, Params]
Answer = list[Row] | DatabaseError


def ask(connection: Connection, asked: Sequence[Asked]) -> Iterator[Answer]:
    """The rows of each, or why they could not be read. Raises DatabaseDown."""
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


# Time limits of one reading, whatever limit the session has.
@contextmanager
def within(connection: Connection, seconds: float) -> Iterator[None]:
    """A transaction whose statements, waits for locks included, raise TimedOut after ``seconds`` each.

    Where the server ends none they have the session's limit.
    """
    with connection.transaction():
        if connection.dialect.limits_statements:
            connection.one(connection.dialect.monitor.within(), {"ms": max(1, round(seconds * 1000))})
        yield
