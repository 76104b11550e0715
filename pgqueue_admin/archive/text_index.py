"""The optional index of the archive's texts: estimate its cost, build it, drop it."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

from pgqueue_admin.archive.errors import IndexRefused
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.dialects.postgresql import postgresql

BLOCKS, MESSAGES = 500, 2_000  # sample size, at most
_HOW = "create extension pg_trgm schema messages"


class Cost(NamedTuple):
    """Estimated from ``sampled`` messages; exact if there are none."""

    messages: int
    bytes: int
    seconds: float
    sampled: int


def facts(connection: Connection) -> Any:
    """A row of text_index.facts. Raises IndexRefused if there is no archive."""
    found = connection.one(_sql().facts())
    if found is None:
        raise IndexRefused("There is no archive here: run manage.py engine_schema first.")
    return found


def refuse(found: Any) -> None:
    """Raises IndexRefused if the role cannot create the index."""
    if not found.is_owner:
        raise IndexRefused(
            f"Nothing was changed: messages.message_archive is {found.owner}'s, and {found.role} may not index it."
        )
    if not found.is_available and not found.home:
        raise IndexRefused(
            "Nothing was changed: this server has no pg_trgm, which the index needs (Debian: package postgresql)."
        )
    if not found.home and found.others_create:
        raise IndexRefused(
            "Nothing was changed: pg_trgm is not installed here, and in schema messages, where it would be put, others "
            "than its owner may create: revoke create on schema messages from them."
        )


def others_create(found: Any) -> str:
    """A warning if the extension's schema lets others create objects; else empty."""
    if not found.home or not found.others_create:
        return ""
    return (
        f"pg_trgm is installed in schema {found.home}, where others may create. The index uses the extension's own "
        "operator class and nothing else of that schema; searches name neither a function nor an operator of it."
    )


def cost(connection: Connection) -> Cost:
    """Estimated size and build time: indexes a few copied messages, then rolls back. Raises IndexRefused."""
    try:
        with connection.transaction():
            home = _install(connection)
            raise _Undone(_tried(connection, home))
    except _Undone as undone:
        return undone.cost


def build(connection: Connection) -> None:
    """Build concurrently with archiving; an index left by an interrupted build is dropped first. Raises
    IndexRefused."""
    with _turn(connection):
        home = _install(connection)
        if facts(connection).is_there:
            connection.run(_sql().drop())
        connection.run(_sql().create(document=_sql().document, home=home))
        connection.run(_sql().count_no_words())


def drop(connection: Connection) -> bool:
    """Return whether there was one. The extension stays: others may use it."""
    with _turn(connection):
        was_there = bool(facts(connection).is_there)
        connection.run(_sql().drop())
    return was_there


def _install(connection: Connection) -> str:
    found = facts(connection)
    if not found.home:
        try:
            connection.run(_sql().create_extension())
        except NotPermitted as error:
            raise IndexRefused(
                f"Nothing was changed: pg_trgm is not installed in this database, and {found.role} may not install it. "
                f"Whoever may: {_HOW}."
            ) from error
    return str(facts(connection).home)


def _tried(connection: Connection, home: str) -> Cost:
    percent = min(100.0, 100.0 * BLOCKS / max(1, connection.value(_sql().blocks())))
    messages = round(connection.value(_sql().sampled_of(), {"percent": percent}) * 100 / percent)
    connection.run(_sql().make_sample())
    sampled = connection.run(_sql().sample(), {"percent": percent, "most": MESSAGES})
    half, _ = _indexed(connection, "text_sample_half", sampled // 2, home)
    whole, seconds = _indexed(connection, "text_sample_whole", sampled, home)
    if not sampled:
        return Cost(messages, whole, seconds, 0)
    each = (whole - half) / (sampled - sampled // 2)
    size = whole if messages <= sampled else whole + round(each * (messages - sampled))
    return Cost(messages, size, seconds / sampled * messages, sampled)


def _indexed(connection: Connection, name: str, most: int, home: str) -> tuple[int, float]:
    began = monotonic()
    connection.run(_sql().index_sample(name=name, document=_sql().document, home=home, most=most))
    return connection.value(_sql().sample_size(), {"name": f"pg_temp.{name}"}), monotonic() - began


@contextmanager
def _turn(connection: Connection) -> Iterator[None]:
    if not connection.value(_sql().take_turn()):
        raise IndexRefused("Nothing was changed: another session builds or drops the index just now.")
    try:
        yield
    finally:
        connection.run(_sql().end_turn())


def _sql() -> Any:
    return postgresql().text_index


class _Undone(Exception):
    def __init__(self, cost: Cost):
        self.cost = cost
