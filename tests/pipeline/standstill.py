"""A driver that stands still at one named point for certain, because PostgreSQL makes it wait there; then kill -9."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pgqueue_admin.pipeline.sources.tables import ARCHIVE

GATE = 47110815
_STAND_STILL = f"""
create or replace function stand_still() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock({GATE});
    return new;
end $$;
create or replace function stand_still_after_the_first() returns trigger language plpgsql as $$
begin
    if exists (select from pgqueue_historybatch where state = 'done') then
        perform pg_advisory_xact_lock({GATE});
    end if;
    return new;
end $$
"""


class Point(NamedTuple):
    """``when`` and ``on`` which table what the driver says next waits; without them, for the table that it reads."""

    name: str
    when: str = ""
    on: str = "pgqueue_historybatch"
    calls: str = "stand_still"


POINTS = [
    Point("planned", "before update of state on {on} for each row when (new.state = 'running')"),
    Point("begun"),
    Point("written", "before update of step on {on} for each row when (new.step = 'written')"),
    Point("read back", "before update of step on {on} for each row when (new.step = 'compared')"),
    Point("before the commit", "before update of step on {on} for each row when (new.step = 'counted')"),
    Point("inside the ending transaction", "after insert on {on} for each statement", "pgqueue_rollup"),
    Point("after the commit", "before insert on {on} for each row", calls="stand_still_after_the_first"),
]

RECOMPUTED = Point("inside a recompute", "after insert on {on} for each statement", "pgqueue_rollup")
COMPACTED = Point(
    "before a compaction's commit",
    "before update of state on {on} for each row when (new.state = 'done')",
    "pgqueue_historycompaction",
)


@contextmanager
def held_at(point: Point, database: Any) -> Iterator[None]:
    """Whoever comes to ``point`` waits there. When it is over, sessions that still wait are ended."""
    if point.when:
        database.run(_STAND_STILL)
        database.run(f"create trigger held {point.when.format(on=point.on)} execute function {point.calls}()")
    database.run("begin")
    gate = f"select pg_advisory_xact_lock({GATE})" if point.when else f"lock table {ARCHIVE} in access exclusive mode"
    database.run(gate)
    try:
        yield
        database.run("select count(pg_terminate_backend(pid)) from pg_locks where not granted")
        database.run("rollback")
    finally:
        if point.when:
            database.run(f"drop trigger held on {point.on}")


def is_waited_for(database: Any) -> bool:
    """Whether anybody stands still there."""
    waiting: bool = database.value(
        "select exists (select from pg_locks where not granted and"
        f" (locktype, classid::bigint << 32 | objid::bigint) = ('advisory', {GATE})"
        f" or not granted and relation = '{ARCHIVE}'::regclass)"
    )
    return waiting
