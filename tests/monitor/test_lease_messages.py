"""Messages of the lease queue as users see them: any content is shown, and reading locks nothing."""

import os
import socket
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.console.leases import query
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.lease import LeaseHandlers, LeaseQueue, LeaseSettings, LeaseWorker
from pgqueue_admin.monitor import discovery, lease_messages
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from tests.archive.test_schema import ORIGINAL
from tests.lease import original
from tests.lease.tables import let_expire
from tests.older_schema import set_back
from tests.waiting import until

Connect = Callable[..., Connection]


def table_of(connection: Connection) -> QueueTable:
    table = discovery.readable(connection, Address("messages", "message"))
    assert table is not None
    return table


def ids(connection: Connection, order: Any, **where: int) -> list[int]:
    return [each.id for each in lease_messages.page(connection, table_of(connection), order, 50, **where)]


@pytest.mark.parametrize(
    ("document", "kind", "fields"),
    [
        ({"kind": "render", "asset": "kettle", "w": 8, "ok": True, "deep": {"a": 1}, "none": None}, "render",
         {"w": "8", "ok": "true", "asset": "kettle"}),
        (["raise", 1], "raise", {}),
        ([], None, {}),
        ([[1]], None, {}),
        ({"kind": {"not": "a text"}}, None, {}),
        ("a text", None, {}),
        (None, None, {}),
        ({"a": "x" * 5000}, None, {"a": "x" * 200}),
        ({str(i): i for i in range(5000)}, None, {str(i): str(i) for i in range(8)}),
        ({"<script>": "\u202e", "kind": "\u0007"}, "\u0007", {"<script>": "\u202e"}),
        ({"kind": "k" * 500}, "k" * 200, {}),
    ],
)  # fmt: skip
def test_kind_and_first_scalar_fields(
    queue: LeaseQueue, reading: Connection, document: Any, kind: str | None, fields: dict[str, str]
) -> None:
    number = queue.publish(document)
    (seen,) = lease_messages.page(reading, table_of(reading), "number", 10)
    assert (seen.id, seen.kind, dict(seen.fields)) == (number, kind, fields)


def test_large_document_is_not_parsed(queue: LeaseQueue, reading: Connection) -> None:
    import random

    noise = random.Random(7).randbytes(200_000).hex()
    number = queue.publish({"kind": "big", "noise": noise})
    (seen,) = lease_messages.page(reading, table_of(reading), "number", 10)
    assert (seen.kind, dict(seen.fields)) == (None, {})
    whole = lease_messages.message(reading, table_of(reading), number)
    assert whole is not None
    assert whole.document_size == len(noise) + len('{"kind": "big", "noise": ""}')
    part = lease_messages.document(reading, table_of(reading), number, whole.document_size - 4, 100)
    assert part is not None
    assert part.size == whole.document_size
    assert part.part.endswith(b'"}')


def test_each_order_begins_where_it_says(queue: LeaseQueue, reading: Connection) -> None:
    one, two, three, four, five = queue.publish_many(range(5))
    first, second, third = queue.claim(3)
    queue.renew(first, 600)
    queue.renew(second, 1e-6)
    queue.release(third, after=600)
    assert ids(reading, "locked") == [two, one]
    assert ids(reading, "waiting") == [four, five, three]
    assert ids(reading, "number") == [one, two, three, four, five]
    assert ids(reading, "number", after=three) == [four, five]
    assert ids(reading, "newest", before=three) == [two, one]
    states = {each.id: each.state for each in lease_messages.page(reading, table_of(reading), "number", 10)}
    assert states == {one: "locked", two: "over", three: "later", four: "waiting", five: "waiting"}


def test_lock_token_and_attempts_are_read_from_the_row(
    queue: LeaseQueue, reading: Connection, engine_database: str
) -> None:
    number = queue.publish(1)
    with psycopg.connect(engine_database, autocommit=True) as worker:
        worker.execute("set timezone = 'UTC'")
        assert original.retrieve(worker, number, 600)
    theirs = lease_messages.message(reading, table_of(reading), number)
    assert theirs is not None
    assert (theirs.state, theirs.has_token, theirs.attempts) == ("locked", False, 0)
    queue.publish(2)
    (lease,) = queue.claim()
    ours = lease_messages.message(reading, table_of(reading), lease.id)
    assert ours is not None
    assert (ours.has_token, ours.attempts, ours.seen) == (True, 1, lease.token)


def test_a_table_of_the_original(connection: Connection) -> None:
    connection.run(ORIGINAL)
    connection.run("""insert into messages.message (message) values ('["go", 1]'), ('2')""")
    connection.run("update messages.message set lock_expires_at = 'infinity' where id = 2")
    table = table_of(connection)
    one, two = lease_messages.page(connection, table, "number", 10)
    assert (one.state, one.kind, one.attempts) == ("waiting", "go", None)
    assert (two.state, two.lock_ends_at) == ("locked", None)
    assert [each.id for each in lease_messages.page(connection, table, "waiting", 10)] == [1]
    for q, numbers in (("is:waiting GO", [1]), ("-is:locked", [1]), ("type:go OR id:2", [1, 2]), ("size:<2", [2])):
        asked = query.read(q, content_access.ALL, table)
        assert [each.id for each in query.look(connection, table, asked, 10).messages] == numbers
    for q in ("attempts:>1", "(holder:thumbs OR id:1)"):
        assert "does not tell it" in str(query.read(q, content_access.ALL, table).error)


def test_words_are_looked_for_in_what_is_large_too(reading: Connection, queue: LeaseQueue) -> None:
    queue.publish_many([{"kind": "needle"}, {"kind": "needle", "rest": [str(n**9) for n in range(9000)]}])
    table = table_of(reading)
    found = query.look(reading, table, query.read("needle", content_access.ALL, table), 1)
    assert ([each.id for each in found.messages], found.looked_at, found.onward) == ([1], 2, 1)
    found = query.look(reading, table, query.read("needle", content_access.ALL, table), 1, after=1)
    assert ([each.id for each in found.messages], found.onward) == ([2], None)


def test_user_scoped_to_the_lease_queue_searches_it(reading: Connection, queue: LeaseQueue) -> None:
    queue.publish(1)
    table = table_of(reading)
    with visible_queues.within(VisibleQueues(frozenset({table.address}), frozenset())):
        assert len(query.look(reading, table, query.read("size:>0", content_access.ALL, table), 1).messages) == 1


def test_listening_sessions_are_listed(reading: Connection, engine_database: str, connect: Connect) -> None:
    with psycopg.connect(engine_database, autocommit=True, application_name="psql") as session:
        session.execute('LISTEN "new_message";')
        with psycopg.connect(engine_database, autocommit=True) as other:
            other.execute("listen dead_message")
            found = lease_messages.listeners(reading)
    assert [(each.application, each.channel) for each in found.sessions][:1] == [("psql", "new_message")]
    assert [each.channel for each in found.sessions] == ["new_message", "dead_message"]
    assert found.hidden == 0


def test_endings_of_the_hour_are_counted_or_said_since_when(
    queue: LeaseQueue, reading: Connection, connect: Connect, engine_database: str
) -> None:
    queue.publish_many(range(4))
    for lease, result in zip(queue.claim(4), ["success", "success", "rejected", "failed"], strict=True):
        queue.finish(lease, result)  # type: ignore[arg-type]
    engine = connect(engine_database)
    engine.run("""
        insert into messages.message_archive (created_at, message, result, handled_by, died_at)
        values (now(), '1', 'lock_expired', 'w', now()), (now(), '1', 'failed', 'w', now() - interval '2 hours')
    """)
    assert lease_messages.endings(reading) == (
        {"success": 2, "rejected": 1, "failed": 1, "lock_expired": 1}, None
    )  # fmt: skip
    engine.run("""
        insert into messages.message_archive (created_at, message, result, handled_by)
        select now(), '1', 'success', 'w' from generate_series(1, 10000)
    """)
    seen = lease_messages.endings(reading)
    assert seen.all == 10_000
    assert seen.since is not None


def test_lock_holder_is_given_by_name_host_and_pid(
    queue: LeaseQueue, reading: Connection, connect: Connect, engine_database: str
) -> None:
    """Until an original client takes the message over, which leaves no name. An expired lock's archive row has it."""
    queue.publish_many([1, 2])
    me = f"thumbs, {socket.gethostname()}, pid {os.getpid()}"
    queue.claim(2)
    page = lease_messages.page(reading, table_of(reading), "locked", 50)
    assert [each.lock_holder for each in page] == [me, me]
    engine = connect(engine_database)
    let_expire(engine, page[0].id)
    let_expire(engine, page[1].id)
    with psycopg.connect(engine_database, autocommit=True) as session:
        session.execute("set timezone = 'UTC'")
        assert original.retrieve(session, page[0].id)
    taken = lease_messages.message(reading, table_of(reading), page[0].id)
    assert taken is not None
    assert (taken.is_over, taken.has_token, taken.lock_holder) == (False, False, None)
    queue.expire()
    assert engine.value("select details from messages.message_archive").endswith(f" UTC. It was held by {me}.")


def test_lock_holder_is_unknown_in_tables_of_the_version_before(
    queue: LeaseQueue, connect: Connect, engine_database: str
) -> None:
    """Messages are still claimed and ended there; holders get names once the tables are upgraded."""
    engine = connect(engine_database)
    set_back(engine, 9)
    queue.publish_many([1, 2])
    (lease,) = queue.claim()
    reading = connect(engine_database, read_only=True)
    (seen,) = lease_messages.page(reading, table_of(reading), "locked", 50)
    assert (seen.has_token, seen.lock_holder) == (True, None)
    let_expire(engine, lease.id)
    assert queue.expire().archived == 1
    assert engine.value("select details from messages.message_archive").endswith(" UTC.")
    schema.install(engine)
    queue.claim()
    (seen,) = lease_messages.page(reading, table_of(reading), "locked", 50)
    assert (seen.lock_holder or "").startswith("thumbs, ")


def test_our_workers_are_among_those_who_listen(reading: Connection, engine_database: str) -> None:
    """Whatever statements their sessions ran since."""
    handlers = LeaseHandlers()
    handlers.handle()(lambda message, lease: None)
    handlers.on_dead()(lambda dead: None)
    worker = LeaseWorker("thumbs " * 9, engine_database, handlers, settings=LeaseSettings(look_every=0.1))
    worker.start()
    try:

        def found() -> list[tuple[str, str]]:
            return [(each.application, each.channel) for each in lease_messages.listeners(reading).sessions]

        said = until(lambda: each if len(each := found()) == 2 else None, what="both listen")
        said = until(lambda: each if len(each := found()) == 2 else None, what="and still do")
    finally:
        worker.stop()
    assert [channel for _, channel in said] == ["new_message", "dead_message"]
    assert all(name.startswith("pgqueue thumbs thumbs") for name, _ in said)
