"""Each statement of the contract on this server's version, in sessions of both zones: all times exact to the second.

Our sessions are in UTC. Here each statement runs in New York too, where its SQL alone must be correct.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.archive import ingester, search_condition, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.archive.search_terms import AllOf, Term
from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.condition import ConditionBuilder
from pgqueue_admin.dialects.statements import Statement
from pgqueue_admin.models.raw_sql import console_sql
from pgqueue_admin.monitor import browse, depth
from pgqueue_admin.transport import Endpoint, Handlers, OutgoingMessage
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time, wire_time
from tests.dialects.test_base import NOUNS
from tests.monitor.tables import found
from tests.transport.conftest import QUICK
from tests.waiting import until

QUEUE = Address("public", "Sales")
MINUTE = timedelta(minutes=1)
IDENTIFIERS = {
    "table": QUEUE,
    "queue": QUEUE,
    "sequence": Address("public", "Sales_seq_seq"),
    "index": "Sales.Delayed_Due",
    "number": "seq",
    "target": QUEUE,
    "calls": postgresql().monitor.calls,
    "matches": search_condition.compiled(AllOf((Term("state", "dead"), Term("", "vat")))).statement,
}
SUBSCRIPTIONS = Address("public", "SubscriptionRouting")
DECISIONS = Address("public", "Sales_OutboxData_Decision")
OUTBOX = Address("public", "Sales_OutboxData")
WHOLE = ("select", "insert", "update", "delete", "with")
OF_ACTS = ("crossing_intent", "lease_rules", "message_copy", "purge")  # for services, in addition to the contract
DEFINITIONS = ("create", "alter", "drop", "comment", "copy", "lock", "set ", "vacuum")

NEEDS_MORE = {"take_over", "timelines"}  # an archive of the original; a function that a superuser grants
PARTS = {"runs_as_ours", "tallied", "tallied_figures", "tallied_standings"}  # begin like whole statements
OF_LEASES = "lease"  # names with this prefix read the lease queue; tests/monitor and tests/console run them

Clock = Callable[[], datetime]


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, engine_database: str, connect: Callable[..., Connection]) -> str:
    """The server's default zone, set on database and role."""
    connection = connect(engine_database)
    name = connection.value("select current_database()")
    connection.run(f"alter database {name} set timezone = '{request.param}'")
    connection.run(f"alter role current_user in database {name} set timezone = '{request.param}'")
    zone: str = request.param
    return zone


@pytest.fixture
def foreign(zone: str, engine_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session in that zone, like other programs have."""
    connection = connect(engine_database)
    connection.run(f"set timezone = '{zone}'")
    assert connection.value("show timezone") == zone
    return connection


@pytest.fixture
def clock(connect: Callable[..., Connection], engine_database: str) -> Clock:
    """The server's time, read in UTC."""
    connection = connect(engine_database)
    return lambda: connection.value("select clock_timestamp()")


@pytest.fixture
def endpoint(zone: str, engine_database: str) -> Iterator[Endpoint]:
    endpoint = Endpoint("Sales", engine_database, settings=QUICK, handlers=Handlers())
    endpoint.create_queues()
    yield endpoint
    endpoint.stop(0)


def test_session_is_in_utc_despite_server_role_and_environment(
    zone: str, engine_database: str, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set for the database, the role, and by libpq's own variable."""
    monkeypatch.setenv("PGTZ", "America/New_York")
    assert connect(engine_database).value("show timezone") == "UTC"
    pool = postgresql().pool(engine_database)
    with pool.connection() as lent:
        assert lent.value("show timezone") == "UTC"
    pool.close()


@pytest.mark.parametrize("noun", [*NOUNS, *OF_ACTS])
def test_each_statement_is_understood_by_this_server(
    dialect: Dialect, foreign: Connection, endpoint: Endpoint, noun: str
) -> None:
    """Prepared verbatim, without a type for any parameter."""
    foreign.run('alter table "Sales" add bodystring text')
    dialect.outbox_store(OUTBOX).create(foreign)
    dialect.decision_store(DECISIONS).create(foreign)
    parts = {each.name: each for other in [*NOUNS, noun] for each in getattr(dialect, other) if not is_whole(each)}
    refused = {}
    for statement in getattr(dialect, noun):
        if is_asked_alone(statement):
            result = foreign.raw.pgconn.prepare(b"", numbered(statement, noun, parts).encode())
            if result.error_message:
                refused[statement.name] = result.error_message.decode()
    assert refused == {}


def test_each_part_of_a_search_is_understood_by_this_server(foreign: Connection) -> None:
    builder, how = ConditionBuilder(), ("has", "is", "starts")
    in_body = search_condition.compiled(AllOf(tuple(Term("body", "x", each, ("a", "b")) for each in how))).statement
    within_others = {"body_path", "one_of", "like_one_of", "ilike_one_of"}  # run within in_body
    asked = {part.name: builder.of(part, "true") for part in postgresql().archive_search}
    whole = {name: builder.statement(in_body, text) for name, text in asked.items() if name not in within_others}
    if foreign.raw.info.server_version >= 160_000:  # older servers cannot tell whether a text is JSON and never run it
        whole["in_body"] = in_body
    refused = {}
    archived = "select m.*, ''::text as lease_state, ''::text as lock_holder from messages.message_archive m"
    for name, statement in whole.items():
        text = f"select a.id from ({archived}) a where {statement().as_string(None)}"
        result = foreign.raw.pgconn.prepare(b"", as_sent(text).encode())
        if result.error_message:
            refused[name] = result.error_message.decode()
    assert refused == {}


OF_HISTORY = {
    "baseline": [
        "touched",
        "first_hour",
        "see",
        "ranges",
        "names_endpoints",
        "depth_ranges",
        "seen",
        "seen_depth",
        "alone",
    ],
    "closed_periods": ["due", "count", "finalize", "doubt", "alone"],
    "navigation_counts": ["counts"],
    "rollup_compaction": ["due", "fold"],
    "trends": ["counts", "counts_of_cut", "timings_of_cut", "timings", "kinds", "retried"],
}


@pytest.mark.parametrize("noun", OF_HISTORY)
def test_each_statement_of_history_is_understood_by_this_server(
    console_database: str, connect: Callable[..., Connection], noun: str
) -> None:
    """They read the console's own tables."""
    session = connect(console_database)
    session.run("set search_path = pg_catalog, pgqueue_console, pg_temp")  # as in Django's sessions
    server = session.raw.pgconn
    parts = {each.name: each for other in (*OF_HISTORY, noun) for each in getattr(console_sql, other)}
    filled: dict[str, Any] = {**parts, "of": parts["of_one"], "measure": "critical"}
    filled |= {"steps": parts["steps_to_sum"], "buckets": "critical_buckets", "numbers": "critical_counts"}
    filled |= {"counted": parts["counted_cut"], "doubted": parts["of_batch"]}
    for statement in (getattr(getattr(console_sql, noun), name) for name in OF_HISTORY[noun]):
        whole = statement(**{part: filled[part] for part in nested(statement.text, filled)}).as_string(None)
        assert server.prepare(b"", as_sent(whole).encode()).error_message == b"", statement.name


def nested(text: str, filled: dict[str, Any]) -> list[str]:
    """The names in a statement, followed by the names in those parts."""
    names = list(names_in(text))
    return names + [each for name in names for each in nested(getattr(filled[name], "text", ""), filled)]


def is_asked_alone(statement: Statement) -> bool:
    needs_more = statement.name in NEEDS_MORE or statement.name.startswith(OF_LEASES)
    return is_whole(statement) and not is_definition(statement) and not needs_more


def is_whole(statement: Statement) -> bool:
    """Whether it is a whole statement, not a part of others."""
    return statement.name not in PARTS and sql_of(statement).startswith((*WHOLE, *DEFINITIONS))


def is_definition(statement: Statement) -> bool:
    """Run by an installer, not prepared."""
    return sql_of(statement).startswith(DEFINITIONS)


def sql_of(statement: Statement) -> str:
    """The text without its leading comment lines."""
    return re.sub(r"\A(--.*\n)+", "", statement.text).lower()


def numbered(statement: Statement, noun: str, parts: dict[str, Statement]) -> str:
    """As the driver sends it."""
    if statement.name in {"tallied_found", "tallied_groups", "tallied_some"}:
        parts = {**parts, "figures": parts["tallied_figures"], "judging": parts["judging"]}
        parts |= {"newest": parts["newest_of_group"], "order": parts["today_first"]}
        parts |= {"found": postgresql().failure_groups.found_in_queue}
    filled: dict[str, Any] = parts | IDENTIFIERS
    filled |= {"between": parts["between_snapshots"], "kept": parts["kept_of_queue"], "seen": parts["in_seen"]}
    if noun == "delayed" or "delayed" in statement.name or statement.name.startswith("due_"):
        filled |= {"table": Address("public", "Sales.Delayed"), "columns": parts["delayed_columns"]}
    if statement.name == "look_through":
        filled |= {"columns": filled["matches"], "texts": filled["matches"]}
    if statement.name == "sorted":
        filled |= {"value": parts["by_sent"], "order": parts["most_first"], "behind": parts["behind_most"]}
    if statement.name == "into_queue":
        filled |= {"columns": ("id", "headers", "body")}
    if noun == "outbox":
        filled |= {"table": OUTBOX}
    if noun == "decision":
        filled |= {"table": DECISIONS}
    if noun == "subscription" and statement.name != "published":
        filled |= {"table": SUBSCRIPTIONS}
    names, text = names_in(statement.text), statement.text
    looked_into = {"columns"}
    while within := (names & set(parts)) - looked_into:  # parts may contain parts
        looked_into |= within
        names |= set().union(*(names_in(parts[name].text) for name in within))
    if "columns" in names:
        names |= names_in(getattr(filled["columns"], "text", ""))
    text = statement(**{name: filled.get(name, 5) for name in names}).as_string(None)
    return as_sent(text)


def as_sent(text: str) -> str:
    """With numbers in place of names."""
    order = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    return re.sub(r"%\((\w+)\)s", lambda match: f"${order.index(match[1]) + 1}", text).replace("%%", "%")


def names_in(text: str) -> set[str]:
    return set(re.findall(r"(?<!{){(\w+)}", text))


def test_expiry_is_stored_in_utc(dialect: Dialect, foreign: Connection, endpoint: Endpoint, clock: Clock) -> None:
    queue = TableQueue(dialect, QUEUE)
    before = clock()
    queue.send(foreign, [OutgoingMessage(QUEUE, {}, b"", MINUTE)])
    queue.send(foreign, [OutgoingMessage(QUEUE, {}, b"", MINUTE), OutgoingMessage(QUEUE, {}, b"")])
    after = clock()
    expires = [row.expires for row in foreign.all('select expires from "Sales" order by seq')]
    assert expires[2] is None
    for each in expires[:2]:
        assert before + MINUTE <= each.replace(tzinfo=UTC) <= after + MINUTE


def test_expiry_is_judged_alike_by_receive_purge_depth_and_browse(
    dialect: Dialect, foreign: Connection, endpoint: Endpoint, clock: Clock
) -> None:
    """Receive, purge, depth and browse agree: expired a second ago, and not for another minute."""
    queue = TableQueue(dialect, QUEUE)
    insert = "insert into \"Sales\" (id, expires, headers, body) values (gen_random_uuid(), %s, '{}', '')"
    for expires in (clock() - timedelta(seconds=1), clock() + MINUTE):
        foreign.run(insert, [expires.astimezone(UTC).replace(tzinfo=None)])
    table = found(foreign, QUEUE)
    seen = depth.measure(foreign, table)
    assert (seen.expired, seen.ready) == (1, 1)
    assert abs(seen.at - clock()) < MINUTE
    shown = browse.page(foreign, table).messages
    assert [each.is_expired for each in shown] == [True, False]
    assert shown[1].expires_at
    assert shown[1].expires_at.astimezone(UTC).replace(tzinfo=None) == foreign.value('select max(expires) from "Sales"')
    with foreign.raw.transaction(force_rollback=True):
        received = [queue.receive(foreign), queue.receive(foreign)]
    assert [each and each.expired for each in received] == [True, False]
    assert queue.purge(foreign, expired_only=True) == 1
    assert foreign.value('select count(*) from "Sales"') == 1


@pytest.mark.parametrize("delay", [timedelta(days=200), timedelta(hours=3), timedelta()])
def test_delayed_message_is_due_at_its_instant(
    dialect: Dialect, foreign: Connection, endpoint: Endpoint, clock: Clock, delay: timedelta
) -> None:
    """Also across two changes of the clocks, by a duration and by an instant."""
    delayed = DelayedTable(dialect, QUEUE)
    before = clock()
    at = before + delay
    messages = [OutgoingMessage(QUEUE, {}, b"", delay=delay), OutgoingMessage(QUEUE, {}, b"", delay=at)]
    delayed.store(foreign, messages)
    after = clock()
    first, second = sorted(row.due for row in foreign.all('select due from "Sales.Delayed"'))
    assert before + delay <= max(first, second) <= after + delay + timedelta(milliseconds=1)
    assert min(first, second) == at
    left = delayed.next_due(foreign)
    assert (left is not None) == (delay > timedelta()), "what is due already is moved, and not waited for"
    assert left is None or abs(left - (at - clock()).total_seconds()) < 60
    assert delayed.move_due(foreign) == (0 if delay else 2)


def test_the_archive_holds_instants_and_its_original_columns_utc(
    foreign: Connection, endpoint: Endpoint, clock: Clock
) -> None:
    """Archived by us or ingested from an error queue: `created_at` and `archived_at` are UTC without a zone."""
    sent = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)  # summer time in New York, whatever the date is now
    before = clock()
    buried = store.archive_failed(foreign, DeadMessage(queue='"public"."Sales"', sent_at=sent, died_at=sent + MINUTE))
    headers = h.dump({h.MESSAGE_ID: "m", h.FAILED_Q: '"public"."Sales"', h.TIME_SENT: wire_time(sent)})
    foreign.run("insert into error (id, headers, body) values (gen_random_uuid(), %s, '')", [headers])
    ingester.ingest(foreign, Address("public", "error"), 10)
    after = clock()
    rows = foreign.all("select * from messages.message_archive order by id")
    assert len(rows) == 2
    for row in rows:
        assert row.sent_at == sent
        assert row.created_at == sent.replace(tzinfo=None)
        assert before <= row.archived_at.replace(tzinfo=UTC) <= after
        shown = store.get(foreign, row.id)
        assert shown
        assert (shown.created_at, shown.sent_at) == (sent, sent)
        assert before <= shown.archived_at <= after
    dead = store.get(foreign, buried)
    assert dead
    assert dead.died_at == sent + MINUTE


def test_a_row_of_a_lease_client_has_utc_times(foreign: Connection, clock: Clock) -> None:
    """By the column's default, in its session's zone."""
    before = clock()
    foreign.run("insert into messages.message (message) values ('{}')")
    created = foreign.value("select created_at from messages.message")
    assert before <= created.replace(tzinfo=UTC) <= clock()


def test_an_endpoint_beside_sessions_of_that_zone(
    endpoint: Endpoint, foreign: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its headers have the true time; due messages are handled now, including those that other programs delayed."""
    monkeypatch.setenv("TZ", "America/New_York")
    seen = []
    endpoint.handlers.handle("Shop.Ping")(lambda number, context: seen.append((number, context.headers)))
    before = clock()
    endpoint.send("Sales", 1, type="Shop.Ping")
    endpoint.send("Sales", 2, type="Shop.Ping", delay=timedelta())
    headers = h.dump({h.ENCLOSED_MESSAGE_TYPES: "Shop.Ping"})
    delayed = "insert into \"Sales.Delayed\" (headers, body, due) values (%s, %s, now() + %s * interval '1 hour')"
    foreign.run(delayed, [headers, b"3", 0])
    foreign.run(delayed, [headers, b"4", 1])
    endpoint.start()
    until(lambda: len(seen) == 3)
    assert sorted(number for number, _ in seen) == [1, 2, 3]
    sent = parse_time(dict(seen)[1][h.TIME_SENT])
    assert sent
    assert before - timedelta(seconds=1) <= sent <= clock() + timedelta(seconds=1)
