"""A driver that stops reliably at one named point, because PostgreSQL makes it wait there; then kill -9.

Writers may run and be blocked meanwhile; the application name of their sessions identifies them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.history.writers import NAME

ARCHIVE = "messages.message_archive"
GATE = 47110815
_FORGET = "select pg_stat_clear_snapshot()"  # pg_stat_activity is otherwise constant within a transaction
_WAIT = f"""
from pg_locks join pg_stat_activity session using (pid)
where not granted and datname = current_database() and application_name <> '{NAME}'
"""
_STAND_STILL = f"""
create or replace function stand_still() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock({GATE});
    return new;
end $$;
create or replace function stand_still_after_the_first() returns trigger language plpgsql as $$
begin
    if exists (select from pgqueue_console.pgqueue_historybatch where state = 'done') then
        perform pg_advisory_xact_lock({GATE});
    end if;
    return new;
end $$
"""


class Point(NamedTuple):
    """``when`` and ``on``: trigger event and table where the driver waits; without them, the table that it reads."""

    name: str
    when: str = ""
    on: str = "pgqueue_console.pgqueue_historybatch"
    calls: str = "stand_still"


POINTS = [
    Point("planned", "before update of state on {on} for each row when (new.state = 'running')"),
    Point("begun"),
    Point("written", "before update of step on {on} for each row when (new.step = 'written')"),
    Point("read back", "before update of step on {on} for each row when (new.step = 'compared')"),
    Point("before the commit", "before update of step on {on} for each row when (new.step = 'counted')"),
    Point("inside the ending transaction", "after insert on {on} for each statement", "pgqueue_console.pgqueue_rollup"),
    Point("after the commit", "before insert on {on} for each row", calls="stand_still_after_the_first"),
]

RECOMPUTED = Point("inside a recompute", "after insert on {on} for each statement", "pgqueue_console.pgqueue_rollup")
COMPACTED = Point(
    "before a compaction's commit",
    "before update of state on {on} for each row when (new.state = 'done')",
    "pgqueue_console.pgqueue_historycompaction",
)


@contextmanager
def held_at(point: Point, database: Any) -> Iterator[None]:
    """Block at ``point``. At the end, terminate sessions that still wait, except those of writers."""
    if point.when:
        database.run(_STAND_STILL)
        database.run(f"create trigger held {point.when.format(on=point.on)} execute function {point.calls}()")
    database.run("begin")
    gate = f"select pg_advisory_xact_lock({GATE})" if point.when else f"lock table {ARCHIVE} in access exclusive mode"
    database.run(gate)
    try:
        yield
    finally:
        database.run(_FORGET)
        database.run(f"select count(pg_terminate_backend(pid)) {_WAIT}")
        database.run("rollback")
        if point.when:
            database.run(f"drop trigger held on {point.on}")


def is_waited_for(database: Any) -> bool:
    """Whether a session is blocked there."""
    database.run(_FORGET)
    waiting: bool = database.value(
        f"select exists (select {_WAIT} and (relation = '{ARCHIVE}'::regclass"
        f" or (locktype, classid::bigint << 32 | objid::bigint) = ('advisory', {GATE})))"
    )
    return waiting
