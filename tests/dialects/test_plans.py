"""Frequent statements on a million rows use an index and few blocks, by EXPLAIN, never by time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.archive import conversations, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import AllOf, reads_json
from pgqueue_admin.console.messages import waiting_query
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import ServerTooOld
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import browse
from pgqueue_admin.monitor.delayed import FIRST
from pgqueue_admin.services import content_access
from pgqueue_admin.transport.delayed.table import BATCH
from tests import large_queue as large
from tests.databases import Databases
from tests.explain import BY_INDEX, executed
from tests.large_queue import DEAD, QUEUE, ROWS, Large

LOWEST = -(2**63)
NOW = {"now": None}
MIDDLE = "7fffffff-0000-0000-0000-000000000000"


@pytest.fixture
def connection(large_queue: Large, connect: Any) -> Connection:
    return connect(large_queue.dsn)


@pytest.mark.parametrize(
    ("name", "identifiers", "low", "most_blocks"),
    [
        ("receive", {}, DEAD + 1, 30),
        ("receive", {}, DEAD + ROWS // 2, 30),
        ("receive", {}, DEAD + ROWS, 30),
        ("receive_many", {"most": 50}, DEAD + 1, 700),
        ("receive_many", {"most": 50}, DEAD + ROWS // 2, 700),
    ],
)
def test_a_receive_from_the_low_water_mark(
    connection: Connection, name: str, identifiers: dict[str, int], low: int, most_blocks: int
) -> None:
    """200,000 dead rows lie below it, and none is read."""
    query = getattr(postgresql().queue, name)(table=QUEUE, **identifiers)
    plan = executed(connection, query, {"low": low})
    assert plan.reads("Q") <= BY_INDEX
    assert plan.blocks < most_blocks


@pytest.mark.parametrize(("name", "identifiers"), [("receive", {}), ("receive_many", {"most": 50})])
def test_a_receive_without_a_mark_walks_the_index_and_never_sorts(
    connection: Connection, name: str, identifiers: dict[str, int]
) -> None:
    """Even if the planner takes the dead rows for an empty range, it must not read the whole table."""
    query = getattr(postgresql().queue, name)(table=QUEUE, **identifiers)
    assert executed(connection, query, {"low": LOWEST}).reads("Q") <= BY_INDEX


def test_a_peek_takes_two_probes(connection: Connection) -> None:
    """One from the true minimum, through the dead rows ahead of it; one from the other end, a handful of blocks."""
    peek = executed(connection, postgresql().queue.peek(table=QUEUE))
    assert peek.reads("Q") <= BY_INDEX
    receive = executed(connection, postgresql().queue.receive(table=QUEUE), {"low": LOWEST})
    assert peek.blocks < receive.blocks + 100


@pytest.mark.parametrize(
    ("name", "values", "most_blocks"),
    [
        ("upwards", {"after": DEAD, "limit": 51, **NOW}, 120),
        ("upwards", {"after": DEAD + ROWS // 2, "limit": 51, **NOW}, 120),
        ("downwards", {"last": 2**63 - 1, "limit": 51, **NOW}, 120),
        ("downwards", {"last": DEAD + ROWS // 2, "limit": 51, **NOW}, 120),
        ("upwards_tied", {"after": DEAD, "id": MIDDLE, "limit": 51, **NOW}, 160),
        ("upwards_tied", {"after": DEAD + ROWS // 2, "id": MIDDLE, "limit": 51, **NOW}, 160),
        ("downwards_tied", {"last": 2**63 - 1, "id": MIDDLE, "limit": 51, **NOW}, 160),
        ("downwards_tied", {"last": DEAD + ROWS // 2, "id": MIDDLE, "limit": 51, **NOW}, 160),
        ("listed", {"seqs": [DEAD + 7, ROWS], **NOW}, 60),
        ("message", {"id": "00000000-0000-0000-0000-000000000000", **NOW}, 20),
        ("body", {"id": "00000000-0000-0000-0000-000000000000", "offset": 0, "length": 10}, 20),
        ("headers_at", {"seq": ROWS}, 20),
        ("times_to_be_received", {"low": DEAD + 1}, 120),
        ("expired", {"after": DEAD, **NOW}, 40_000),
    ],
)
def test_browsing_pages_by_key(connection: Connection, name: str, values: dict[str, Any], most_blocks: int) -> None:
    browsing = postgresql().browse
    query = getattr(browsing, name)(table=QUEUE, columns=browsing.columns, reach=browse.REACH)
    plan = executed(connection, query, values)
    assert plan.reads("Q") <= BY_INDEX
    assert plan.blocks < most_blocks


SEARCHES = ("type:PlaceOrder", "zq7 -headers:x", "body.order.no:5 OR id:m-1", "sent:2026-11-20 size:>1mb")


@pytest.mark.parametrize("q", SEARCHES)
@pytest.mark.parametrize(("way", "end"), [("up", "highest"), ("down", "lowest")])
def test_a_search_of_what_waits_reads_its_piece_alone(connection: Connection, q: str, way: str, end: str) -> None:
    sql = postgresql().waiting_search
    wanted = waiting_query.read(q, content_access.ALL).wanted or AllOf(())
    if reads_json(wanted) and connection.raw.info.server_version < 160_000:
        with pytest.raises(ServerTooOld, match="PostgreSQL 16"):
            waiting_query.condition(connection, wanted)
        return
    asked = waiting_query.condition(connection, wanted)
    parts = {"place": getattr(sql, way), "end": getattr(sql, end), "waiting": sql.waiting, "matches": asked.matches}
    values = {**asked.params, "only_expired": False, "seq": DEAD + ROWS // 2, "rows": 500}
    plan = executed(connection, sql.look_through(table=QUEUE, **parts), values)
    assert plan.reads("Q") <= BY_INDEX
    assert plan.blocks < 700


@pytest.fixture(scope="module")
def large_delayed(databases: Databases) -> Iterator[Large]:
    with large.delayed(databases) as made:
        yield made


def test_due_messages_are_moved_from_one_end_of_the_index(
    large_delayed: Large, connect: Callable[..., Connection]
) -> None:
    """A batch of a hundred out of a million: its own rows, and nothing that is not due."""
    connection, delayed = connect(large_delayed.dsn), postgresql().delayed
    table = QUEUE._replace(table="Q.Delayed")
    moved = executed(connection, delayed.move_due(table=table, queue=QUEUE, batch=BATCH))
    assert moved.reads("Q.Delayed") <= BY_INDEX
    assert moved.blocks < 30 * BATCH
    looked = executed(connection, delayed.next_due(table=table))
    assert looked.reads("Q.Delayed") <= BY_INDEX
    assert looked.blocks < 20


def test_behind_a_hundred_thousand_overdue(databases: Databases, connect: Callable[..., Connection]) -> None:
    """Other movers hold them, or the endpoint was down: the next due time reads none, a move reads its batch."""
    with large.delayed(databases, rows=101_000, due=100_000) as made:
        table = QUEUE._replace(table="Q.Delayed")
        next_due = postgresql().delayed.next_due(table=table)
        connection = connect(made.dsn)
        moved = executed(connection, postgresql().delayed.move_due(table=table, queue=QUEUE, batch=BATCH))
        assert moved.reads("Q.Delayed") <= BY_INDEX
        assert moved.blocks < 30 * BATCH
        looked = executed(connection, next_due)
        assert looked.reads("Q.Delayed") <= BY_INDEX
        assert looked.blocks < 20
        assert 0 < connection.value(next_due) <= 60


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("delayed_upwards", {"due": "-infinity", "id": "00000000-0000-0000-0000-000000000000", "limit": 51}),
        ("delayed_upwards", {"due": "now", "id": "7fffffff-0000-0000-0000-000000000000", "limit": 51}),
        ("delayed_downwards", {"due": "infinity", "id": "ffffffff-ffff-ffff-ffff-ffffffffffff", "limit": 51}),
        ("delayed_message", {"id": "00000000-0000-0000-0000-000000000000"}),
        ("delayed_body_starts", {"ids": ["00000000-0000-0000-0000-000000000000"] * 50, "most": 16_384}),
        ("due_and_headers", {}),
    ],
)
def test_delayed_messages_are_paged_by_key(
    large_delayed: Large, connect: Callable[..., Connection], name: str, values: dict[str, Any]
) -> None:
    browsing = postgresql().browse
    table = QUEUE._replace(table="Q.Delayed")
    query = getattr(browsing, name)(table=table, columns=browsing.delayed_columns, most=50)
    plan = executed(connect(large_delayed.dsn), query, values)
    assert plan.reads("Q.Delayed") <= BY_INDEX
    assert plan.blocks < 120


@pytest.mark.parametrize("q", SEARCHES)
def test_a_search_of_delayed_messages_reads_its_piece_alone(
    large_delayed: Large, connect: Callable[..., Connection], q: str
) -> None:
    connection, sql = connect(large_delayed.dsn), postgresql().waiting_search
    wanted = waiting_query.read(q, content_access.ALL).wanted or AllOf(())
    if reads_json(wanted) and connection.raw.info.server_version < 160_000:
        with pytest.raises(ServerTooOld, match="PostgreSQL 16"):
            waiting_query.condition(connection, wanted)
        return
    asked = waiting_query.condition(connection, wanted)
    statement = sql.look_through_delayed(
        table=QUEUE._replace(table="Q.Delayed"), waiting=sql.waiting, matches=asked.matches
    )
    due, id = FIRST
    plan = executed(connection, statement, {**asked.params, "due": due, "id": id, "rows": 500})
    assert plan.reads("Q.Delayed") <= BY_INDEX
    assert plan.blocks < 700


@pytest.fixture(scope="module")
def large_archive(databases: Databases) -> Iterator[Large]:
    with large.archive(databases) as made:
        yield made


def test_a_conversation_reads_the_newest_of_the_archive(
    large_archive: Large, connect: Callable[..., Connection]
) -> None:
    """Also those around a message, and named ones by index: never the whole archive."""
    connection, archive = connect(large_archive.dsn), postgresql().archive
    asked: dict[str, Any] = {"name": '"NServiceBus.ConversationId"', "values": ['"c"'], "limit": 501, "seen": None}
    near = {**asked, "died_at": datetime.now(UTC) - timedelta(days=6), "seq": 0, "near": conversations.NEAR}
    looks = [
        (archive.in_conversation, {**asked, "newest": conversations.NEWEST}, 2 * conversations.NEWEST),
        (archive.around_conversation, near, 4 * conversations.NEAR),
        (archive.of_ids, {"message_ids": ["m"], "ids": [7, 8], "limit": 501, "seen": None}, 200),
    ]
    for statement, values, most in looks:
        plan = executed(connection, statement(has_conversation=archive.has_conversation), values)
        assert plan.reads("message_archive") <= BY_INDEX
        assert plan.blocks < most


def test_a_conversation_reads_those_that_are_due_soonest(
    large_delayed: Large, connect: Callable[..., Connection]
) -> None:
    browsing = postgresql().browse
    table = QUEUE._replace(table="Q.Delayed")
    query = browsing.delayed_in_conversation(table=table, has_conversation=postgresql().archive.has_conversation)
    plan = executed(connect(large_delayed.dsn), query, {"name": '"n"', "values": ['"c"'], "newest": 2_000})
    assert plan.reads("Q.Delayed") <= BY_INDEX
    assert plan.blocks < 4_000


def test_the_archive_is_listed_by_key(large_archive: Large, connect: Callable[..., Connection]) -> None:
    """Every filter of the page, in both directions: from an index, and only as much as a page or a cap needs."""
    connection, archive = connect(large_archive.dsn), postgresql().archive
    parts = {"listed": archive.listed, "is_queue": archive.is_queue}
    connection.run(
        "insert into messages.operation_item (operation, position, archive_id)"
        " select 7, i, 10 * i from generate_series(1, 200) i"
    )
    filters = [
        ArchiveFilter(),
        ArchiveFilter(state="", operation=7),
        ArchiveFilter(state="dead", operation=7),
        ArchiveFilter(state="dead", last_operation=7),
        ArchiveFilter(state=""),
        ArchiveFilter(state="dead", queue='"public"."Q0"'),
        ArchiveFilter(state="dead", queue='"messages"."message"'),
        ArchiveFilter(state="dead", exception="Shop.Failed3"),
        ArchiveFilter(state="dead", exception_is="Shop.Failed3"),
        ArchiveFilter(state="", exception_is="Shop.Failed3"),
        ArchiveFilter(state="dead", queue='"public"."Q0"', exception_is="Shop.Failed3"),
        ArchiveFilter(state="succeeded"),
    ]
    key = {"died_at": datetime.now(UTC), "seq": ROWS}
    for filter in filters:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("page", {"died_at": None, "seq": None, "limit": 51}),
            ("page", {**key, "limit": 51}),
            ("page_back", {**key, "died_at": datetime(2020, 1, 1, tzinfo=UTC), "limit": 51}),
        ]
        for name, values in asked:
            plan = executed(
                connection, getattr(archive, name)(**parts, **store.matching(filter)), {**filter.params(), **values}
            )
            assert plan.reads("message_archive") <= BY_INDEX, (filter, name)
            assert plan.reads("operation_item") <= BY_INDEX, (filter, name)
            assert plan.blocks < 5_000, (filter, name, plan)
    dead_of_queue = ArchiveFilter(state="dead", queue='"public"."Q0"')
    for narrowed in (replace(dead_of_queue, exception_is=""), replace(dead_of_queue, exception_from="Shop.Failed3")):
        values = {**narrowed.params(), "died_at": None, "seq": None, "limit": 51}
        plan = executed(connection, archive.page(**parts, **store.matching(narrowed)), values)
        assert plan.reads("message_archive") <= BY_INDEX, narrowed
        assert plan.blocks < 25_000, narrowed  # the 50,000 dead of that queue and no others
    all_dead = archive.count(**store.matching(ArchiveFilter()))
    counted = executed(connection, all_dead, {**ArchiveFilter().params(), "cap": 1_000})
    assert counted.blocks < 5_000  # whatever the plan: it stops at the cap
    alerts, named = postgresql().alerts, {"queues": [], "causes": [], "most": 100}
    oid = connection.value("select 'messages.message_archive'::regclass::oid")
    unread: dict[str, Any] = {"before": datetime.now(UTC), "read": "1:1:", "archive": f"1/1/{oid}", "most": 1000}
    unread |= {"filed": None, "filed_before": None}
    prune = archive.prune(read_by_others=archive.nobody_else, is_settled=archive.is_settled)
    assert executed(connection, prune, unread).blocks < 20
    exact = ArchiveFilter(state="dead", exception_is="Shop.Failed3")
    values = {**exact.params(), "died_at": None, "seq": None, "limit": 51}
    plan = executed(connection, archive.page(**parts, **store.matching(exact)), values)
    assert {"message_archive_exception", "message_archive_dead"} & plan.indexes
    ids = {"text": "42", "row_id": "00000000-0000-0000-0000-000000000000", "id": 42, "limit": 101, "seen": None}
    for analyzed in (True, False):
        with connection.raw.transaction(force_rollback=True):
            if not analyzed:
                connection.run("delete from pg_statistic where starelid = 'messages.message_archive'::regclass")
            seen = executed(connection, archive.sightings(), ids)
            died = executed(connection, archive.deaths(), {"message_id": "42", "queue": "q", "limit": 1000})
        assert seen.reads("message_archive") <= BY_INDEX
        assert seen.blocks < 40
        assert died.reads("message_archive") <= BY_INDEX
        assert died.blocks < 40
    lying = executed(connection, alerts.lying(named=alerts.named), named)
    assert lying.reads("message_archive") <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
    assert lying.blocks < 2_500  # of 10,000 that the archive has
    for name in ("dead_by_queue", "dead_by_cause"):
        plan = executed(connection, getattr(archive, name)())
        assert plan.reads("message_archive") <= BY_INDEX, name


@pytest.mark.parametrize("acted", [0, 50_000])
def test_a_chunk_of_a_set_that_nobody_analyzed(
    large_archive: Large, connect: Callable[[str], Connection], acted: int
) -> None:
    """Of 100,000 messages just frozen: outcomes are written one by one, whatever their number."""
    connection, sql = connect(large_archive.dsn), postgresql().operation
    made = "insert into messages.operation_item (operation, position, archive_id, outcome)"
    with connection.raw.transaction(force_rollback=True):
        connection.run("truncate messages.operation_item")
        values = "select 8, i, i, case when i <= %(acted)s then 'done' end from generate_series(1, 100000) i"
        connection.run(f"{made} {values}", {"acted": acted})
        ids = list(range(acted + 1, acted + 201))
        of_each = dict.fromkeys(("whys", "whos", "whens"), [None] * 200)
        texts = {name: ["done"] * 200 for name in ("outcomes", "targets", "sent_as")}
        connection.all(sql.look_up_each())
        asked = {"operation_id": 8, "ids": ids, **of_each, **texts}
        plan = executed(connection, sql.record(sent_too=sql.sent_too), asked)
    assert plan.indexes == {"operation_item_operation_archive_id_key"}, plan
    assert plan.blocks < 6_000, plan


def test_looks_of_a_staged_retry(large_archive: Large, connect: Callable[[str], Connection]) -> None:
    """Of 20,000 messages among a million, 3,000 acted on: each second's looks read only the set."""
    connection, sql = connect(large_archive.dsn), postgresql().operation
    made = "insert into messages.operation_item (operation, position, archive_id, outcome, at, sent_as, left_at)"
    acted = "case when i <= 3000 then 'done' end, case when i <= 3000 then now() end"
    connection.run(
        f"{made} select 9, i, i, {acted}, case when i <= 3000 then gen_random_uuid()::text end,"
        " case when i <= 2900 then now() end from generate_series(1, 20000) i"
    )
    others = "insert into messages.operation_item (operation, position, archive_id, outcome)"
    connection.run(f"{others} select 10 + i / 10000, i % 10000, i, 'done' from generate_series(1, 300000) i")
    connection.run("analyze messages.operation_item")
    of = {"operation_id": 9}
    whole = {"known_as": sql.known_as, "with_class": sql.with_class, "edited_id": sql.edited_id}
    patience = {"patience": timedelta(minutes=30), "seed": None}
    looks: list[tuple[Any, dict[str, Any], int]] = [
        (sql.next_position(is_here=sql.is_here), {}, 50),
        (sql.sent_waiting(), {"after": 0, "limit": 2000}, 200),
        (sql.tried(), {"last": 5}, 100),
        (sql.deaths(), {"judged_from": 0, "tried": 5, "others": 49}, 30_000),
        (sql.tally(**whole), {"tried": 5, "some": 55, **patience}, 100_000),
        (sql.items_of_class(**whole), {"after": 0, "classes": None, "limit": 51, **patience}, 2_000),
    ]
    for query, values, most_blocks in looks:
        plan = executed(connection, query, {**of, **values})
        assert plan.reads("message_archive") <= BY_INDEX, query
        assert plan.reads("operation_item") <= BY_INDEX, query
        assert plan.blocks < most_blocks, (query, plan)
