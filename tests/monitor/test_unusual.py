"""Tables that somebody made otherwise than an endpoint does: their figures are true, or are said to be unknown."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from psycopg import sql

from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor.sampler import QueueSample, Sampler
from tests.monitor.tables import fill, make

Connect = Callable[..., Connection]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
COLUMNS = "id uuid, expires timestamp, headers text, body bytea, seq bigint"


@pytest.fixture
def sampler(database: str, connect: Connect) -> Iterator[Sampler]:
    sampler = Sampler(lambda: connect(database, read_only=True), ["public"], cap=1000)
    yield sampler
    sampler.close()


def looked(sampler: Sampler, seconds: float = 0) -> dict[str, QueueSample]:
    seen = sampler.sample(NOON + timedelta(seconds=seconds))
    return {sample.table.address.table: sample for sample in seen}


def test_a_part_on_another_server_that_does_not_answer_blinds_no_other(
    connection: Connection, sampler: Sampler
) -> None:
    fill(connection, make(connection, "Healthy"), 7)
    connection.run("create extension postgres_fdw")
    connection.run("create server away foreign data wrapper postgres_fdw options (host '127.0.0.1', port '1')")
    connection.run("create user mapping for current_user server away")
    connection.run(f'create table "Part" ({COLUMNS}) partition by range (seq)')
    connection.run('create foreign table "Part_1" partition of "Part" for values from (0) to (100) server away')
    seen = looked(sampler)
    healthy = seen["Healthy"].depth
    assert healthy is not None
    assert healthy.depth == 7
    assert seen["Part"].depth is None
    assert "could not connect" in seen["Part"].error


@pytest.fixture
def behind_policies(connection: Connection, database: str, connect: Connect) -> Iterator[Sampler]:
    """One of a role to which row policies apply."""
    fill(connection, make(connection), 17)
    connection.run('alter table "Q" enable row level security')
    connection.run('create role only_looks_unusual; grant select on "Q" to only_looks_unusual')

    def session() -> Connection:
        looker = connect(database, read_only=True)
        looker.run(sql.SQL("set role only_looks_unusual"))
        return looker

    sampler = Sampler(session, ["public"])
    yield sampler
    sampler.close()
    connection.run("drop owned by only_looks_unusual; drop role only_looks_unusual")


def test_a_table_whose_rows_are_hidden_from_the_role_cannot_be_read(
    connection: Connection, behind_policies: Sampler
) -> None:
    seen = looked(behind_policies)["Q"]
    assert (seen.depth, seen.in_per_second, seen.left_at) == (None, None, None)
    assert "Row-level security hides rows of it" in seen.error
    connection.run('create policy few on "Q" for select to only_looks_unusual using (seq < 5)')
    sampler = behind_policies
    sampler.close()
    assert looked(sampler)["Q"].depth is None


def test_a_policy_that_shows_all_rows_hides_none(connection: Connection, behind_policies: Sampler) -> None:
    connection.run('create policy every on "Q" for select to only_looks_unusual using (true)')
    depth = looked(behind_policies)["Q"].depth
    assert depth is not None
    assert depth.depth == 17
    connection.run('create policy but on "Q" as restrictive for select using (seq < 5)')
    behind_policies.close()
    assert looked(behind_policies)["Q"].depth is None
