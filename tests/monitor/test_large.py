"""Frequent statements on a million rows and 200,000 dead ones before the head use index probes only."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from psycopg import sql

from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor import browse, depth, seq_occupancy
from pgqueue_admin.monitor.queue_table import QueueTable
from tests.explain import executed
from tests.large_queue import DEAD, ROWS
from tests.large_queue import Large as World
from tests.monitor.tables import found


@dataclass
class Large:
    dsn: str
    table: QueueTable


@pytest.fixture
def large(large_queue: World, connect: Callable[..., Connection]) -> Large:
    return Large(large_queue.dsn, found(connect(large_queue.dsn), large_queue.address))


@pytest.fixture
def looker(large: Large, connect: Callable[..., Connection]) -> Connection:
    return connect(large.dsn, read_only=True, statement_timeout=60)


def test_depth_is_estimated_by_index_probes(large: Large, looker: Connection) -> None:
    seen = depth.measure(looker, large.table, low_water=DEAD)
    assert (seen.how, seen.depth, seen.head_seq, seen.tail_seq) == ("estimate", ROWS, DEAD + 1, ROWS + DEAD)
    plan = executed(looker, *depth.asked(looker.dialect.monitor, large.table, low_water=DEAD))
    assert plan.reads("Q") <= {"Index Scan", "Index Only Scan"}
    assert plan.blocks < 2_500


def test_a_low_water_seq_spares_the_dead_rows(large: Large, looker: Connection) -> None:
    """Measured: min(seq) takes 220 ms each time, 0.06 ms from a low-water seq. The test counts blocks, not time."""
    head = sql.SQL('select seq from "Q" where seq >= {} order by seq limit 1')
    whole, spared = (executed(looker, head.format(low)) for low in (0, DEAD - depth.LATE))
    assert whole.blocks > 100 * spared.blocks


def test_a_page_is_read_by_key(large: Large, looker: Connection) -> None:
    first = browse.page(looker, large.table, low_water=DEAD)
    assert [message.seq for message in first.messages] == list(range(DEAD + 1, DEAD + 51))
    newest = browse.page(looker, large.table, order="newest", limit=2)
    assert [message.seq for message in newest.messages] == [ROWS + DEAD, ROWS + DEAD - 1]


def test_the_ruler_probes_and_gives_up_in_time(large: Large, looker: Connection) -> None:
    filled = seq_occupancy.steps(looker, large.table, DEAD + 1, ROWS + DEAD, timeout=60)
    assert filled == [True] * seq_occupancy.STEPS
    assert seq_occupancy.steps(looker, large.table, 1, ROWS + DEAD, timeout=0.001) is None
