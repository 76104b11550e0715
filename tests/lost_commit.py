"""Lost answers to COMMIT, as PostgreSQL itself loses them: the commit waits for a standby that does not exist."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Connection

WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"


@contextmanager
def nobody_stands_by(admin: Connection) -> Iterator[None]:
    """Commits with synchronous_commit on are durable and wait; the sessions of tests have it off."""
    _configure(admin, "set synchronous_standby_names = 'nobody'")
    try:
        yield
    finally:
        _configure(admin, "reset synchronous_standby_names")


def who_inserts_waits(connection: Connection, table: str) -> None:
    """Make a commit wait that inserted into this table. Commits of all other sessions return at once."""
    connection.run(
        "create function wait_for_a_standby() returns trigger language plpgsql as"
        " $$ begin perform set_config('synchronous_commit', 'on', true); return null; end $$"
    )
    made = "create trigger waits after insert on"
    connection.run(f"{made} {table} for each statement execute function wait_for_a_standby()")


def end_who_waits(connection: Connection) -> None:
    """End the waiting sessions. Their transactions are committed; their clients only see the connection lost."""
    connection.run(WAITS.replace("pid", "pg_terminate_backend(pid)", 1))


def _configure(admin: Connection, change: str) -> None:
    admin.run(f"alter system {change}")
    admin.run("select pg_reload_conf()")
