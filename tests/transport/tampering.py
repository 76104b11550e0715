"""Changes to a queue table behind an endpoint's back."""

import time
from collections.abc import Callable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql.addressing import quote
from tests.waiting import until


def trigger(connection: Connection, table: str, event: str, body: str, deferred: bool = False) -> None:
    """Create the row trigger ``meddler``; ``body`` is PL/pgSQL."""
    kind, when = ("constraint trigger", "deferrable initially deferred") if deferred else ("trigger", "")
    connection.run(f"create function meddle() returns trigger language plpgsql as $$ begin {body} end $$")
    connection.run(f"create {kind} meddler {event} on {quote(table)} {when} for each row execute function meddle()")


def untrigger(connection: Connection, table: str) -> None:
    connection.run(f"drop trigger meddler on {quote(table)}")


def rate(asked: Callable[[], list[str]], seconds: float = 1.0) -> float:
    """Statements per second, over at least that many seconds."""
    began, before = time.monotonic(), len(asked())
    until(lambda: time.monotonic() - began > seconds)
    return (len(asked()) - before) / (time.monotonic() - began)
