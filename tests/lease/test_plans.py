"""With a million waiting messages each statement uses an index and touches few blocks, by EXPLAIN."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pgqueue_admin.archive.search_terms import reads_json
from pgqueue_admin.console.leases import query
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import ServerTooOld
from pgqueue_admin.dialects.lease_store import Ending, Result
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import depth, discovery, lease_messages, waiting_search
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from tests import large_queue as large
from tests.databases import Databases
from tests.explain import BY_INDEX, Plan, executed

STORE = postgresql().leases
LOCKED = large.ROWS // 10 + 1  # the first locked one


class Explained:
    dialect = postgresql()
    """Roll back the statement and keep its plan."""

    def __init__(self, connection: Connection):
        self.raw = connection.raw
        STORE.expire_query(connection, 1)  # reads the columns once per session
        self.connection = connection
        self.plans: list[Plan] = []

    def all(self, query: Any, params: Any = None) -> list[Any]:
        self.plans.append(executed(self.connection, query, params))
        with self.connection.raw.transaction(force_rollback=True):
            return self.connection.all(query, params)

    def one(self, query: Any, params: Any = None) -> Any:
        return (self.all(query, params) or [None])[0]

    def value(self, query: Any, params: Any = None) -> Any:
        row = self.one(query, params)
        return row[0] if row else None


@pytest.fixture(scope="module")
def leases(databases: Databases) -> Iterator[large.Large]:
    with large.leases(databases) as made:
        yield made


@pytest.fixture(scope="module", params=["never analysed", "analysed"])
def connection(request: pytest.FixtureRequest, leases: large.Large) -> Iterator[Connection]:
    with postgresql().connect(leases.dsn, for_handlers=True) as connection:
        if request.param == "analysed":
            connection.run("vacuum analyze messages.message")
        yield connection


def held(connection: Connection, number: int) -> list[tuple[int, str]]:
    rows = "select id, lock_token::text from messages.message where id between %(first)s and %(last)s order by id"
    return [tuple(row) for row in connection.all(rows, {"first": LOCKED, "last": LOCKED + number - 1})]


def endings(keys: list[tuple[int, str]], result: Result) -> list[Ending]:
    return [Ending(message, token, result) for message, token in keys]


@pytest.mark.parametrize(
    ("ask", "most_blocks"),
    [
        (lambda it, of: STORE.claim(it, 1, 60), 100),
        (lambda it, of: STORE.claim(it, 100, 60), 4_000),
        (lambda it, of: STORE.renew(it, of(1), 60), 100),
        (lambda it, of: STORE.renew(it, of(100), 60), 4_000),
        (lambda it, of: STORE.finish(it, endings(of(1), "failed"), "thumbs", "host"), 400),
        (lambda it, of: STORE.finish(it, endings(of(100), "success"), "thumbs", "host"), 20_000),
        (lambda it, of: STORE.release(it, of(1)[0]), 100),
        (lambda it, of: STORE.expire(it, 1000, "cron"), 20),
        (lambda it, of: STORE.outlook(it), 20),
    ],
    ids=["claim", "claim 100", "renew", "renew 100", "finish", "finish 100", "release", "expire none", "outlook"],
)
def test_by_an_index(connection: Connection, ask: Callable[[Any, Any], object], most_blocks: int) -> None:
    explained = Explained(connection)
    ask(explained, lambda number: held(connection, number))
    (plan,) = explained.plans
    assert plan.reads("message") <= BY_INDEX
    assert plan.blocks < most_blocks


def test_notified_again_by_the_key(connection: Connection) -> None:
    """Before the first analyze the planner may read the whole table, once a minute."""
    explained = Explained(connection)
    assert STORE.renotify(explained, 1000) == 1000  # type: ignore[arg-type]
    assert explained.plans[0].blocks < 40_000


def test_plan_prepared_on_an_empty_queue_uses_an_index(
    engine_database: str, connect: Callable[..., Connection]
) -> None:
    """Sessions keep plans: one made for an empty table must not scan a full one."""
    session, other = connect(engine_database), connect(engine_database)
    for _ in range(10):
        STORE.publish(session, ["1", "2"])
        first, second = STORE.claim(session, 2, 60)
        STORE.renew(session, [(first.id, first.token)], 60)
        STORE.release(session, (first.id, first.token))
        STORE.finish(session, [Ending(second.id, second.token, "success")], "thumbs", "host")
        other.run("delete from messages.message")
    other.run("alter table messages.message disable trigger user")
    other.run("insert into messages.message (message) select to_jsonb(i) from generate_series(1, 200000) i")
    other.run("alter table messages.message enable trigger user")
    read = "select seq_tup_read from pg_stat_user_tables where relid = 'messages.message'::regclass"
    session.run("select pg_stat_force_next_flush()")
    before = other.value(read)
    for _ in range(5):
        first, second = STORE.claim(session, 2, 60)
        STORE.renew(session, [(first.id, first.token)], 60)
        STORE.release(session, (first.id, first.token))
        STORE.finish(session, [Ending(second.id, second.token, "success")], "thumbs", "host")
    session.run("select pg_stat_force_next_flush()")
    assert other.value(read) - before < 200_000


@pytest.mark.parametrize(
    ("look", "most_blocks"),
    [
        (lambda it, table: it.all(*depth.asked(it.dialect.monitor, table)), 45_000),
        (lambda it, table: lease_messages.page(it, table, "number", 51), 300),
        (lambda it, table: lease_messages.page(it, table, "newest", 51), 300),
        (lambda it, table: lease_messages.page(it, table, "locked", 51), 3_000),  # all end at one instant
        (lambda it, table: lease_messages.page(it, table, "waiting", 51), 300),
        (lambda it, table: lease_messages.locks_over(it, table), 45_000),
        (lambda it, table: lease_messages.message(it, table, LOCKED), 20),
        (lambda it, table: it.one(postgresql().lease.seen_now(seen=postgresql().lease.seen), {"id": LOCKED}), 20),
    ],
    ids=["depth", "number", "newest", "locked", "waiting", "over", "message", "seen"],
)
def test_the_console_looks_by_index_whatever_lies_there(
    connection: Connection, look: Callable[[Any, QueueTable], Any], most_blocks: int
) -> None:
    table = discovery.find_one(connection, large.LEASES)
    assert table is not None
    explained = Explained(connection)
    look(explained, table)
    (plan,) = explained.plans
    assert plan.reads("message") <= BY_INDEX
    assert plan.blocks < most_blocks


def test_a_chunk_of_a_purge_looks_at_little_more_than_it_takes(connection: Connection) -> None:
    asked = {"lowest": 1, "up_to": 2**31 - 1, "limit": 200}
    explained = Explained(connection)
    assert len(explained.all(postgresql().purge.hold_leases(), asked)) == 200
    (plan,) = explained.plans
    assert plan.reads("message") <= BY_INDEX
    assert plan.blocks < 4_000


@pytest.mark.parametrize(
    "q",
    [
        "is:locked", "is:expired OR is:later", "age:>1h", "sent:1m", '"nobody wrote this"',
        "type:render -holder:thumbs", "is:locked n age:<10d attempts:<5", "id:>100 body.n:=7", "size:>1mb",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_newest_first", [False, True])
@pytest.mark.parametrize("start", [None, large.ROWS // 2])
def test_a_search_looks_through_its_piece_and_no_further(
    connection: Connection, q: str, is_newest_first: bool, start: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few rows match: it reports what it did not reach and continues from there."""
    table = discovery.find_one(connection, large.LEASES)
    assert table is not None
    asked = query.read(q, content_access.ALL, table)
    assert asked.wanted
    if reads_json(asked.wanted) and connection.raw.info.server_version < 160_000:
        with pytest.raises(ServerTooOld, match="PostgreSQL 16"):
            query.look(connection, table, asked, 51)
        return
    monkeypatch.setattr(waiting_search, "ROWS", waiting_search.FIRST)
    explained: Any = Explained(connection)
    where = {"before": start} if is_newest_first else {"after": start}
    found = query.look(explained, table, asked, 501, is_newest_first=is_newest_first, **where)
    assert found.looked_at == waiting_search.FIRST
    assert found.onward is not None
    for plan in explained.plans:
        assert plan.reads("message") <= BY_INDEX
        assert plan.blocks < 2_000


def test_message_id_is_found_by_index(connection: Connection) -> None:
    table = discovery.find_one(connection, large.LEASES)
    assert table is not None
    explained: Any = Explained(connection)
    found = query.look(explained, table, query.read("id:900000", content_access.ALL, table), 51)
    assert ([each.id for each in found.messages], found.looked_at, found.onward) == ([900_000], 1, None)
    assert all(plan.blocks < 50 for plan in explained.plans)


def test_expire_reads_only_its_batch_of_many_expired_locks(connection: Connection) -> None:
    """After an outage of all workers and cron jobs: 20,000 locks have expired at once."""
    explained = Explained(connection)
    with connection.raw.transaction(force_rollback=True):
        connection.run(
            "update messages.message set lock_expires_at = (now() at time zone 'utc') - interval '1 hour',"
            " token_expires_at = null where id between %s and %s",
            [LOCKED, LOCKED + 19_999],
        )
        STORE.expire(explained, 1000, "cron")  # type: ignore[arg-type]
        assert STORE.expire(connection, 1000, "cron")[0] == 1000
    (plan,) = explained.plans
    assert plan.reads("message") <= BY_INDEX
    assert plan.blocks < 60_000


def test_past_the_cap_each_state_is_an_estimate_near_the_truth(connection: Connection) -> None:
    table = discovery.find_one(connection, large.LEASES)
    assert table is not None
    seen = depth.measure(connection, table)
    assert (seen.how, seen.delayed_how) == ("estimate", "estimate")
    assert seen.ready == pytest.approx(large.ROWS, rel=0.05)
    assert (seen.in_flight, seen.delayed) == (pytest.approx(large.ROWS // 10, rel=0.3),) * 2
