"""Hot statements on a million rows, and on 600,000 dead ones before the head: index probes, whatever lies there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import sql

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import browse, depth, ruler
from pgqueue_admin.monitor.tables import QueueTable
from tests.databases import Databases
from tests.monitor.tables import fill, found, make

ROWS, DEAD = 1_000_000, 600_000


@dataclass
class Large:
    dsn: str
    table: QueueTable


@pytest.fixture(scope="module")
def large(databases: Databases) -> Iterator[Large]:
    """A million live rows, and before them 600,000 that an old snapshot keeps from being vacuumed."""
    with databases.clone("empty") as dsn, postgresql().connect(dsn) as connection, postgresql().connect(dsn) as old:
        address = make(connection)
        fill(connection, address, ROWS + DEAD, id="md5(i::text)::uuid", headers="'{}'")
        old.run("begin isolation level repeatable read")
        old.value("select 1")
        connection.run(f'delete from "Q" where seq <= {DEAD}')
        connection.run("analyze")
        yield Large(dsn, found(connection, address))
        old.run("rollback")


@pytest.fixture
def looker(large: Large, connect: Callable[..., Connection]) -> Connection:
    return connect(large.dsn, read_only=True, statement_timeout=5)


def plan(connection: Connection, query: Any, params: Any) -> dict[str, Any]:
    explained = connection.value(sql.SQL("explain (analyze, buffers, format json) ") + query, params)
    return explained[0]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def scans(explained: dict[str, Any]) -> set[str]:
    return {node["Node Type"] for node in nodes(explained["Plan"]) if node.get("Relation Name") == "Q"}


def test_depth_is_estimated_by_index_probes(large: Large, looker: Connection) -> None:
    seen = depth.measure(looker, large.table, low_water=DEAD)
    assert (seen.how, seen.depth, seen.head_seq, seen.tail_seq) == ("estimate", ROWS, DEAD + 1, ROWS + DEAD)
    explained = plan(looker, *depth.asked(large.table, low_water=DEAD))
    assert scans(explained) <= {"Index Scan", "Index Only Scan"}
    assert explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"] < 2_500


def test_a_low_water_seq_spares_the_dead_rows(large: Large, looker: Connection) -> None:
    """Measured: min(seq) 220 ms each time, from a low-water seq 0.06 ms. Counted here in blocks, which do not hurry."""
    head = sql.SQL('select seq from "Q" where seq >= {} order by seq limit 1')
    whole, spared = (plan(looker, head.format(low), None)["Plan"] for low in (0, DEAD - depth.LATE))
    blocks = [each["Shared Hit Blocks"] + each["Shared Read Blocks"] for each in (whole, spared)]
    assert blocks[0] > 100 * blocks[1]


def test_a_page_is_read_by_key(large: Large, looker: Connection) -> None:
    first = browse.page(looker, large.table, low_water=DEAD)
    assert [message.seq for message in first.messages] == list(range(DEAD + 1, DEAD + 51))
    newest = browse.page(looker, large.table, order="newest", limit=2)
    assert [message.seq for message in newest.messages] == [ROWS + DEAD, ROWS + DEAD - 1]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("upwards", {"after": DEAD, "limit": 51, "now": None}),
        ("downwards", {"before": 2**63 - 1, "limit": 51, "now": None}),
        ("listed", {"seqs": [DEAD + 7, ROWS], "now": None}),
        ("message", {"id": "00000000-0000-0000-0000-000000000000", "now": None}),
        ("expired", {"after": DEAD, "now": None}),
    ],
)
def test_browsing_reads_the_index(large: Large, looker: Connection, name: str, values: dict[str, Any]) -> None:
    browsing = postgresql().browse
    query = getattr(browsing, name)(table=large.table.address, columns=browsing.columns, reach=browse.REACH)
    assert scans(plan(looker, query, values)) <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}


def test_the_ruler_probes_and_gives_up_in_time(large: Large, looker: Connection) -> None:
    filled = ruler.steps(looker, large.table, DEAD + 1, ROWS + DEAD, timeout=2)
    assert filled == [True] * ruler.STEPS
    assert ruler.steps(looker, large.table, 1, ROWS + DEAD, timeout=0.001) is None
