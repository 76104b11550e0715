"""Detects a pooler in transaction mode, which lends another server session for each transaction."""

from collections.abc import Callable

from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.liveness import first
from pgqueue_admin.dialects.postgresql.session import translated

ROUNDS = 3  # others use the same pooler, and by chance one may get the same session twice
ANSWER_SECONDS = 5.0  # a pooler with a single session has none for the second who asks


def has_own_sessions(connect: Callable[[], Connection]) -> bool:
    """Two ask by turns, then one of them inside the other's transaction. ``connect``: without prepared statements.

    Raises DatabaseDown where the first gets no session. Where the second gets none, sessions are few, and not shared.
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
    except DatabaseError:  # such as a setting of somebody's else
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
    """The schemas in which a new session looks until it is told others: a pooler drops what ``dsn`` says of them.

    Raises DatabaseDown.
    """
    with translated, PatientConnection.connect(dsn, autocommit=True, connect_timeout=5) as raw:
        (found,) = first(raw).execute("select pg_catalog.current_schemas(true)").fetchall()
        return list(found[0])
