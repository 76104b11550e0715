"""C2: every figure of the recorded queues equals the one that plain SQL counted."""

from collections.abc import Callable
from datetime import datetime

import pytest

from pgqueue_admin.demo.restore_recording import RECORDED_AT
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.monitor import browse, depth, discovery
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.monitor.sampler import Sampler
from tests.monitor.expected import EXPECTED, by_address

SCHEMAS = ["public", "Legacy"]


@pytest.fixture
def recorded(recorded_database: str, connect: Callable[..., Connection]) -> Connection:
    return connect(recorded_database, read_only=True, statement_timeout=60)


@pytest.fixture
def tables(recorded: Connection) -> dict[Address, QueueTable]:
    return {table.address: table for table in discovery.find(recorded, SCHEMAS)}


def test_every_table_is_classified(tables: dict[Address, QueueTable]) -> None:
    kinds = {address: table.kind for address, table in tables.items()}
    special = {
        "error": TableKind.ERROR,
        "audit": TableKind.AUDIT,
        "ErrorArchive": TableKind.ARCHIVE,
        "NotAQueue": TableKind.UNKNOWN,
    }
    for address in by_address("queues"):
        assert kinds.pop(address) == special.get(address.table, TableKind.INPUT)
    for address in by_address("delayed"):
        assert kinds.pop(address) == TableKind.DELAYED
    assert kinds == {
        Address("public", "NotAQueue"): TableKind.UNKNOWN,
        Address("public", "SubscriptionRouting"): TableKind.SUBSCRIPTION,
    }


def test_catalog_facts_match_the_recording(tables: dict[Address, QueueTable]) -> None:
    for address, expected in by_address("queues").items():
        table = tables[address]
        facts = (table.seq_type, table.has_primary_key, table.has_bodystring)
        assert facts == (expected["seq_type"], expected["has_primary_key"], expected["has_bodystring"]), address
        assert (table.sequence is None) == (address.table == "ErrorArchive")
        assert table.size_bytes > 0


def test_single_table_is_found_as_among_all(recorded: Connection, tables: dict[Address, QueueTable]) -> None:
    for address, table in tables.items():
        assert discovery.find_one(recorded, address) == table
    assert discovery.find_one(recorded, Address("public", "Sales_OrderPolicy")) is None


def test_delayed_tables_are_paired(tables: dict[Address, QueueTable]) -> None:
    for name in ("Sales", "Billing", "Shipping", "Shop.Web", "Mailer"):
        assert tables[Address("public", name)].delayed == Address("public", f"{name}.Delayed")
        assert tables[Address("public", f"{name}.Delayed")].delayed_of == Address("public", name)
    assert tables[Address("public", "Poison.Delayed")].delayed_of is None
    assert tables[Address("public", "Shipping.eu-1")].delayed is None


@pytest.mark.parametrize("cap", [depth.CAP, 100_000])
def test_depth(recorded: Connection, tables: dict[Address, QueueTable], cap: int) -> None:
    for address, expected in by_address("queues").items():
        found = depth.measure(recorded, tables[address], cap=cap, now=RECORDED_AT)
        assert found.how == ("counted" if expected["rows"] <= cap else "estimate"), address
        assert found.depth == expected["rows"], address  # no rows are missing inside the span, so all probes hit
        assert (found.head_seq, found.tail_seq) == (expected["min_seq"], expected["max_seq"]), address
        assert found.span == (expected["seq_span"] or 0), address
        if found.how == "counted":
            assert (found.ready, found.expired) == (expected["ready"], expected["expired"]), address
        else:
            assert found.ready == pytest.approx(expected["ready"], rel=0.08), address
        assert not found.in_flight, address


def test_delayed(recorded: Connection, tables: dict[Address, QueueTable]) -> None:
    for address, expected in by_address("delayed").items():
        found = depth.measure(recorded, tables[address], now=RECORDED_AT)
        assert (found.delayed, found.overdue) == (expected["rows"], expected["already_due"]), address
        first = expected["first_due"] and datetime.fromisoformat(expected["first_due"])
        assert found.next_due_at == first, address


def test_every_message_can_be_read(recorded: Connection, tables: dict[Address, QueueTable]) -> None:
    """C3, and "Bad input": headers that are no JSON, NULL bodies, times beyond any calendar."""
    for address, expected in by_address("queues").items():
        page = browse.page(recorded, tables[address], limit=50, now=RECORDED_AT)
        assert len(page.messages) == min(50, expected["rows"])
        for message in page.messages:
            again = browse.message(recorded, tables[address], message.id, now=RECORDED_AT)
            assert again == message
            assert message.state in {"ready", "expired"}
            assert message.headers or message.unreadable or message.headers_text in {"", "{}"}


def test_the_sampler_reads_all_of_it(recorded_database: str, connect: Callable[..., Connection]) -> None:
    sampler = Sampler(lambda: connect(recorded_database, read_only=True), SCHEMAS)
    samples = {sample.table.address: sample for sample in sampler.sample(now=RECORDED_AT)}
    sampler.close()
    assert [sample.error for sample in samples.values() if sample.error] == []
    sales = samples[Address("public", "Sales")]
    assert sales.delayed
    assert (sales.delayed.delayed, sales.delayed.overdue) == (116, 40)
    assert sales.oldest_how == "estimate"  # older than the sampler: dated by TimeSent
    assert sales.oldest_at
    assert sales.oldest_at < RECORDED_AT
    assert sales.size_bytes
    assert sales.size_bytes > sum(q["body_bytes"] for q in EXPECTED["queues"][:1])
    assert sales.in_per_second is None  # needs two samples
