"""Detects a pooler in transaction mode, which may lend another server session for each transaction."""

from collections.abc import Callable

from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.liveness import first
from pgqueue_admin.dialects.postgresql.session import translated

ROUNDS = 3  # the pooler has other clients, and by chance one may get the same session twice
ANSWER_SECONDS = 5.0  # a pooler with a single session has none for a second client


def has_own_sessions(connect: Callable[[], Connection]) -> bool:
    """Query in two sessions by turns, then in one inside the other's transaction. ``connect``: no prepared statements.

    Raises DatabaseDown if the first gets no session. If only the second gets none, sessions are few, but not shared.
    """
    with connect() as one:
        _note(one, "one")
        try:
            other = connect()
        except DatabaseDown:
            return _noted(one) == "one"
        with other:
            return all(_keeps_apart(one, other) for _ in range(ROUNDS))


def _keeps_apart(one: Connection, other: Connection) -> bool:
    try:
        _note(one, "one")
        _note(other, "other")
        return _noted(one) == "one" and _noted(other) == "other" and _inside(one, other) and _inside(other, one)
    except DatabaseDown:
        raise
    except DatabaseError:  # e.g. a setting of another client
        return False


def _inside(one: Connection, other: Connection) -> bool:
    before = _noted(other)
    with one.transaction():
        _noted(one)
        return _noted(other) == before


def _note(session: Connection, text: str) -> None:
    session.value(session.dialect.server.note(), {"text": text})


def _noted(session: Connection) -> str:
    return str(session.value(session.dialect.server.noted()))


def first_path(dsn: str) -> list[str]:
    """The initial search path of a session, with implicit schemas: a pooler drops the one in ``dsn``.

    Raises DatabaseDown.
    """
    with translated, PatientConnection.connect(dsn, autocommit=True, connect_timeout=5) as raw:
        (found,) = first(raw).execute("select pg_catalog.current_schemas(true)").fetchall()
        return list(found[0])
