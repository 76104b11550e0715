"""With a million records each statement uses an index and touches few blocks, by EXPLAIN."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.monitor.outboxes import OutboxTable
from tests.databases import Databases
from tests.explain import BY_INDEX
from tests.lease.test_plans import Explained

ROWS = 1_000_000
TABLE = Address("public", "Billing_OutboxData")
WAITING = 2_000
FILL = """insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations", "CreatedAt")
select md5(i::text), i > %(waiting)s, case when i > %(waiting)s
    then now() at time zone 'utc' - interval '10 days' * i / %(rows)s end, '[]', now() - interval '1 hour'
from generate_series(1, %(rows)s) i"""
ONE = "c4ca4238a0b923820dcc509a6f75849b"  # md5 of 1
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)


@pytest.fixture(scope="module")
def connection(databases: Databases) -> Iterator[Connection]:
    """A session to the records of a stopped endpoint: 2,000 are undispatched, and clean-up last ran three days ago."""
    with databases.clone("empty") as dsn, postgresql().connect(dsn, for_handlers=True) as session:
        store = postgresql().outbox_store(TABLE)
        session.run(postgresql().outbox.create(table=TABLE))
        session.run('alter table "Billing_OutboxData" set unlogged, drop constraint "Billing_OutboxData_pkey"')
        session.run(FILL, {"rows": ROWS, "waiting": WAITING})
        session.run(postgresql().outbox.add_key(table=TABLE))
        store.create(session)
        session.run('vacuum analyze "Billing_OutboxData"')
        yield session


def table(says_when: bool = True) -> OutboxTable:
    return OutboxTable(TABLE, ROWS, says_when, (), "")


def store(says_when: bool = True) -> Any:
    made = postgresql().outbox_store(TABLE)
    made.says_when = says_when
    return made


@pytest.mark.parametrize(
    ("ask", "most_blocks"),
    [
        (lambda it: it.one(*store().finding(ONE)), 6),
        (lambda it: it.one(*store().finding("nobody's")), 6),
        (lambda it: it.all(*store().marking(ONE)), 60),
        (lambda it: store().work(it, WEEK, timedelta(minutes=1)), 300),
        (lambda it: store().work(it, timedelta(days=3650), HOUR * 2), 300),
        (lambda it: store().pending(it, timedelta(minutes=1), 100, []), 1_000),
        (lambda it: store(False).pending(it, timedelta(minutes=1), 100, []), 1_000),
        (lambda it: it.all(postgresql().outbox.hold_pending(table=TABLE), {"ids": [ONE]}), 30),
        (lambda it: outboxes.pending_ids(it, TABLE, 1_000), 9_000),
        (lambda it: outboxes.still_pending(it, TABLE, [ONE, "nobody's"]), 30),
        (lambda it: outboxes.pending(it, table(), 51), 9_000),
        (lambda it: outboxes.dispatched(it, table(), 51), 300),
        (lambda it: outboxes.dispatched(it, table(), 51, after="8"), 300),
        (lambda it: outboxes.record(it, table(), ONE), 10),
        (lambda it: it.value(postgresql().outbox.count_pending(table=TABLE, most=1_001)), 1_200),
        (lambda it: it.value(postgresql().outbox.count_dispatched(table=TABLE, most=1_001)), 60),
        (lambda it: it.value(postgresql().outbox.oldest_kept(table=TABLE)), 10),
    ],
    ids=[
        "find", "find none", "mark", "work", "work, all fresh", "pending", "pending of the original's", "hold", "ids",
        "of these", "list", "list dispatched", "list from the middle", "record", "count", "count dispatched",
        "oldest kept",
    ],
)  # fmt: skip
def test_by_an_index(connection: Connection, ask: Callable[[Any], Any], most_blocks: int) -> None:
    explained = Explained(connection)
    ask(explained)
    assert explained.plans
    for plan in explained.plans:
        assert plan.reads(TABLE.table) <= BY_INDEX, plan
        assert plan.blocks < most_blocks, plan


def test_a_batch_of_clean_up_is_found_by_an_index(connection: Connection) -> None:
    explained = Explained(connection)
    explained.all(postgresql().outbox.purge(table=TABLE, most=4_000), {"keep": WEEK.total_seconds()})
    assert explained.plans[0].reads(TABLE.table) <= BY_INDEX
    assert explained.plans[0].blocks < 100_000
