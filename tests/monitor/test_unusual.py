"""Tables that somebody made otherwise than an endpoint does: their figures are true, or are said to be unknown."""

from collections.abc import Callable, Iterator

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor.sampler import QueueSample, Sampler
from tests.monitor.tables import fill, make

Connect = Callable[..., Connection]
COLUMNS = "id uuid, expires timestamp, headers text, body bytea, seq bigint"


@pytest.fixture
def sampler(database: str, connect: Connect) -> Iterator[Sampler]:
    sampler = Sampler(lambda: connect(database, read_only=True), ["public"], cap=1000)
    yield sampler
    sampler.close()


def looked(sampler: Sampler) -> dict[str, QueueSample]:
    return {sample.table.address.table: sample for sample in sampler.sample()}


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
