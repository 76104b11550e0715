"""Answers to COMMIT that never come, really lost by PostgreSQL: it waits for a standby that there is none of."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Connection

WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"


@contextmanager
def nobody_stands_by(admin: Connection) -> Iterator[None]:
    """Who commits with synchronous_commit on is durable, and waits; the sessions of tests commit without asking."""
    _configure(admin, "set synchronous_standby_names = 'nobody'")
    try:
        yield
    finally:
        _configure(admin, "reset synchronous_standby_names")


def who_inserts_waits(connection: Connection, table: str) -> None:
    """Into this table, at the commit; all other sessions of the server commit without asking anybody."""
    connection.run(
        "create function wait_for_a_standby() returns trigger language plpgsql as"
        " $$ begin perform set_config('synchronous_commit', 'on', true); return null; end $$"
    )
    made = "create trigger waits after insert on"
    connection.run(f"{made} {table} for each statement execute function wait_for_a_standby()")


def end_who_waits(connection: Connection) -> None:
    """Then it is committed for everybody, and who asked for it is told that its session is gone."""
    connection.run(WAITS.replace("pid", "pg_terminate_backend(pid)", 1))


def _configure(admin: Connection, change: str) -> None:
    admin.run(f"alter system {change}")
    admin.run("select pg_reload_conf()")
