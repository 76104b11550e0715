"""Tables created differently from an endpoint's: their figures are correct, or reported as unknown."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.monitor.sampler import QueueSample, Sampler
from tests.monitor.tables import fill, found, looking_as, make

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


def rates(sample: QueueSample) -> tuple[float | None, float | None]:
    return sample.in_per_second, sample.out_per_second


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
    """A sampler with a role that row policies apply to."""
    fill(connection, make(connection), 17)
    connection.run('alter table "Q" enable row level security')
    connection.run('create role only_looks_unusual; grant select on "Q" to only_looks_unusual')

    sampler = Sampler(lambda: looking_as("only_looks_unusual", connect, database), ["public"])
    yield sampler
    sampler.close()
    connection.run("drop owned by only_looks_unusual; drop role only_looks_unusual")


def test_a_table_whose_rows_are_hidden_from_the_role_cannot_be_read(
    connection: Connection, behind_policies: Sampler
) -> None:
    seen = looked(behind_policies)["Q"]
    assert (seen.depth, seen.in_per_second, seen.last_departure_at) == (None, None, None)
    assert "Row-level security hides rows of it" in seen.error


@pytest.mark.parametrize("shown", ["seq < 5", "true"])
def test_no_policy_is_asked_whatever_it_says_now(connection: Connection, behind_policies: Sampler, shown: str) -> None:
    """A policy that shows all rows now may hide some at the next sample."""
    connection.run(f'create policy shown on "Q" for select to only_looks_unusual using ({shown})')
    assert looked(behind_policies)["Q"].depth is None
    connection.run("alter role only_looks_unusual bypassrls")
    behind_policies.close()
    depth = looked(behind_policies)["Q"].depth
    assert depth is not None
    assert depth.depth == 17


@pytest.mark.parametrize("numbers", ["increment 10", "increment 10 restart 7", "restart 5000"])
def test_a_sequence_that_counts_otherwise(connection: Connection, sampler: Sampler, numbers: str) -> None:
    """Two primaries divide the numbers by their last digit."""
    address = make(connection)
    connection.run(f'alter sequence "Q_seq_seq" {numbers}')
    looked(sampler)
    fill(connection, address, 20)
    assert rates(looked(sampler, 10)["Q"]) == (2.0, 0.0)
    connection.run('delete from "Q" where seq in (select seq from "Q" order by seq limit 5)')
    assert rates(looked(sampler, 20)["Q"]) == (1.0, 0.25)


def test_a_copy_that_takes_its_numbers_from_the_original(connection: Connection, sampler: Sampler) -> None:
    """LIKE ... INCLUDING ALL copies a serial's default: the sequence is shared, so it tells nothing about either."""
    address = make(connection)
    connection.run('create table "Q.copy" (like "Q" including all)')
    looked(sampler)
    fill(connection, address, 20)
    seen = looked(sampler, 10)
    assert (rates(seen["Q"]), rates(seen["Q.copy"])) == ((None, None), (None, None))
    assert seen["Q.copy"].last_departure_at is None
    depth = seen["Q"].depth
    assert depth is not None
    assert depth.sent_total == 20, "how near its end the sequence is, is known all the same"


def test_parts_of_one_table_share_its_sequence_and_its_rates(connection: Connection, sampler: Sampler) -> None:
    connection.run(
        f'create table "Part" ({COLUMNS.replace("seq bigint", "seq serial unique")}) partition by range (seq)'
    )
    for part in range(2):
        bounds = f"from ({part * 100}) to ({part * 100 + 100})"
        connection.run(f'create table "Part_{part}" partition of "Part" for values {bounds}')
    looked(sampler)
    fill(connection, Address("public", "Part"), 20)
    assert rates(looked(sampler, 10)["Part"]) == (2.0, 0.0)


def test_numbers_that_sessions_keep_in_reserve_count_nothing(
    connection: Connection, sampler: Sampler, database: str, connect: Connect
) -> None:
    address, other = make(connection), connect(database)
    connection.run('alter sequence "Q_seq_seq" cache 100')
    looked(sampler)
    fill(connection, address, 3)
    fill(other, address, 3)
    assert rates(looked(sampler, 10)["Q"]) == (None, None)


def test_numbers_that_go_down(connection: Connection, sampler: Sampler) -> None:
    """The newest are received first, so the head does not show how long the oldest waits."""
    address = make(connection)
    connection.run('alter sequence "Q_seq_seq" increment -1 minvalue -1000 start -1 restart')
    for seconds in range(5):
        fill(connection, address, 2)
        seen = looked(sampler, seconds)["Q"]
        assert (rates(seen), seen.oldest_at) == ((None, None), None)
        assert seen.depth is not None
        assert seen.depth.depth == 2 * seconds + 2


def test_a_sequence_that_begins_again_has_no_end(connection: Connection) -> None:
    address = make(connection)
    assert found(connection, address).seq_end == 2**31 - 1
    connection.run('alter sequence "Q_seq_seq" cycle')
    assert found(connection, address).seq_end is None
