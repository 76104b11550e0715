"""A million ended lease messages: lists, filters and counts use an index, by EXPLAIN.

PGQUEUE_TEST_ARCHIVED_LEASES=10000000 tests ten million.
"""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import Ending
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import lease_messages
from tests import large_queue as large
from tests.databases import Databases
from tests.explain import BY_INDEX, executed
from tests.lease.test_plans import STORE, Explained

ROWS = int(os.environ.get("PGQUEUE_TEST_ARCHIVED_LEASES", large.ROWS))
CAP = 10_000
QUEUE = '"messages"."message"'
LEASE = ArchiveFilter(state="", kind="lease")


@pytest.fixture(scope="module")
def connection(databases: Databases) -> Iterator[Connection]:
    with large.archived_leases(databases, ROWS) as made, postgresql().connect(made.dsn, for_handlers=True) as session:
        yield session


def page(it: Any, asked: ArchiveFilter, **key: Any) -> None:
    archive = postgresql().archive
    query = archive.page(listed=archive.listed, is_queue=archive.is_queue, **store.matching(asked))
    it.all(query, {**asked.params(), "died_at": None, "seq": None, **key, "limit": 51})


@pytest.mark.parametrize(
    ("look", "most_blocks"),
    [
        (lambda it: page(it, LEASE), 300),
        (lambda it: page(it, LEASE, seq=ROWS // 2, died_at="now"), 300),
        (lambda it: page(it, ArchiveFilter(kind="lease")), 400),
        (lambda it: page(it, ArchiveFilter(state="", kind="lease", queue=QUEUE)), 300),
        (lambda it: page(it, ArchiveFilter(kind="lease", queue=QUEUE, type_is="render1")), 700),
        (lambda it: page(it, ArchiveFilter(state="", message_id=str(ROWS // 2 + 1))), 50),
        (lambda it: lease_messages.endings(it, timedelta(hours=1)), 12_000),
    ],
    ids=["list", "from the middle", "dead", "of the queue", "of a kind", "by id", "endings"],
)
def test_the_archive_is_looked_at_by_index(
    connection: Connection, look: Callable[[Any], Any], most_blocks: int
) -> None:
    explained = Explained(connection)
    look(explained)
    assert explained.plans
    for plan in explained.plans:
        assert plan.reads("message_archive") <= BY_INDEX, plan
        assert plan.blocks < most_blocks, plan


@pytest.mark.parametrize("state", ["", "dead"])
def test_a_count_ends_at_its_cap(connection: Connection, state: str) -> None:
    """If nearly all rows match, the planner may read the table from its start, up to the cap."""
    explained, asked = Explained(connection), ArchiveFilter(state=state, kind="lease")
    count = postgresql().archive.count(**store.matching(asked))
    assert explained.value(count, {**asked.params(), "cap": CAP}) == CAP + 1
    assert explained.plans[0].blocks < 15_000


def test_an_ending_costs_the_same_however_many_ended_before(connection: Connection) -> None:
    connection.run("insert into messages.message (message) values ('1')")
    (lease,) = STORE.claim(connection, 1, 60)
    explained = Explained(connection)
    STORE.finish(explained, [Ending(lease.id, lease.token, "failed")], "thumbs", "host")  # type: ignore[arg-type]
    (plan,) = explained.plans
    assert plan.reads("message_archive") <= BY_INDEX
    assert plan.blocks < 400


@pytest.mark.parametrize("analysed", [False, True])
def test_rules_look_at_what_is_due_and_at_nothing_else(connection: Connection, analysed: bool) -> None:
    """However many wait or were retried before, each row is found by a key."""
    rules = postgresql().lease_rules
    with connection.raw.transaction(force_rollback=True):
        connection.run(
            "insert into messages.lease_rule_dead (archive_id, available_at)"
            " select id, now() + case when id % 1000 = 0 then -1 else 1 end * interval '1 hour'"
            " from messages.message_archive where state = 'dead' limit 200000"
        )
        connection.run(
            "insert into messages.lease_rule_retry (message_id, archive_id, rule, nth)"
            " select n, n, 1, 1 from generate_series(1, 200000) n"
        )
        if analysed:
            connection.run("analyze messages.lease_rule_dead, messages.lease_rule_retry")
        held = executed(connection, rules.hold_due(most=100))
        due = executed(connection, rules.due_in())
        connection.run(
            "insert into messages.lease_rule (message_type, results, times, wait_seconds, who)"
            " overriding system value values ('', array['failed'], 1, 1, 'x')"
        )
        connection.run("update messages.lease_rule_retry set rule = (select id from messages.lease_rule)")
        done = executed(connection, rules.rules_done(), {"cap": CAP})
    for table in ("message_archive", "lease_rule_dead", "lease_rule_retry"):
        assert held.reads(table) <= BY_INDEX, held
    assert held.blocks < 3_000
    assert due.reads("lease_rule_dead") <= BY_INDEX
    assert due.blocks < 1_000
    assert done.blocks < 15_000, "a count ends at its cap"
