"""Sessions of handlers and callers keep their search path; our statements in them do not depend on it."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage, RetriedFrom
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.lease_store import Ending, HandEnding
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.queue_store import LOWEST
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.message import OutgoingMessage

# Shadows every object of the catalog: same name, same types. Some cannot be created that way.
SHADOWS = """
create schema hostile;
create function hostile.fail() returns boolean language plpgsql as $$ begin raise 'a stranger''s code ran'; end $$;
do $do$
declare each record;
begin
    for each in
        select oid, proname, pg_get_function_identity_arguments(oid) as args, pg_get_function_result(oid) as result
        from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f' and pg_function_is_visible(oid)
    loop
        begin
            execute format('create function hostile.%I(%s) returns %s language plpgsql as %L', each.proname, each.args,
                each.result, 'begin raise ''a stranger''''s code ran: ' || each.proname || '''; end');
        exception when others then null;
        end;
    end loop;
    for each in
        select oid, oprname, nullif(oprleft, 0)::regtype as l, oprright::regtype as r, oprresult::regtype as result
        from pg_operator where oprnamespace = 'pg_catalog'::regnamespace
    loop
        begin
            execute format('create function hostile.of_%s(%s) returns %s language plpgsql as %L', each.oid,
                concat_ws(', ', each.l, each.r), each.result,
                'begin raise ''a stranger''''s code ran: ' || replace(each.oprname, '%', '%%') || '''; end');
            execute format('create operator hostile.%s (function = hostile.of_%s, rightarg = %s%s)', each.oprname,
                each.oid, each.r, ', leftarg = ' || each.l);
        exception when others then null;
        end;
    end loop;
    for each in
        select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typelem = 0
    loop
        begin
            execute format('create domain hostile.%1$I as pg_catalog.%1$I check (hostile.fail())', each.typname);
        exception when others then null;
        end;
    end loop;
end $do$
"""
PATH = "-c search_path=hostile,pg_catalog"
_MADE, _ARE_MADE = (
    "select count(*) from (values ('hostile'::regnamespace)) as schema (name)",
    (
        "join pg_proc on pronamespace = name",
        "join pg_operator on oprnamespace = name",
        "join pg_type on typnamespace = name and typtype = 'd'",
    ),
)
QUEUE = Address("public", "Sales")


def handlers(dsn: str) -> Iterator[Connection]:
    with postgresql().connect(f"{dsn}?options={quote(PATH)}", for_handlers=True) as connection:
        yield connection


def callers(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, options=PATH, autocommit=True) as raw:
        yield postgresql().borrow(raw)


@pytest.fixture(params=[handlers, callers], ids=lambda opens: opens.__name__)
def shadowed(request: pytest.FixtureRequest, engine_database: str, connect: Callable[..., Connection]) -> Any:
    maker = connect(engine_database)
    TableQueue(postgresql(), QUEUE).create(maker)
    DelayedTable(postgresql(), QUEUE).create(maker)
    Subscriptions(Addressing(postgresql(), "public", {}), "").create(maker)
    maker.run(SHADOWS)
    made = [maker.value(f"{_MADE} {where}") for where in _ARE_MADE]
    assert all(number > least for number, least in zip(made, (2_000, 700, 50), strict=True)), made
    yield from request.param(engine_database)


def outgoing(body: bytes = b"{}", **more: Any) -> OutgoingMessage:
    return OutgoingMessage(QUEUE, {"NServiceBus.MessageId": str(uuid.uuid4())}, body, **more)


def test_the_shadows_are_found_by_what_is_not_in_full(shadowed: Connection) -> None:
    for query in ("select now()", "select 1 = 1", "select 'x'::text", "select pg_catalog.now() < pg_catalog.now()"):
        with pytest.raises(DatabaseError, match="a stranger's code ran"):
            shadowed.value(query)


@pytest.mark.parametrize("times", [1, 6], ids=["once", "prepared"])
def test_sends_and_receives_run_nothing_of_it(shadowed: Connection, times: int) -> None:
    queue, delayed = TableQueue(postgresql(), QUEUE), DelayedTable(postgresql(), QUEUE)
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    for _ in range(times):
        queue.send(shadowed, [outgoing(ttbr=hour)])
        queue.send(shadowed, [outgoing(ttbr=hour), outgoing()])
        queue.send_as_it_is(shadowed, str(uuid.uuid4()), "?", b"")
        assert queue.load(shadowed, [outgoing(ttbr=hour), outgoing()])
        delayed.store(shadowed, [outgoing(delay=minute), outgoing(delay=datetime(2030, 1, 1, tzinfo=UTC))])
        tell_with_commit(shadowed, postgresql(), [QUEUE])
        with shadowed.transaction_with(*queue.receiving(LOWEST)) as rows:
            assert len(rows) == 1
        with shadowed.transaction_with(*queue.receiving(LOWEST, 3)) as rows:
            first = rows[0]
        assert queue.is_received(shadowed, first)
        assert queue.receive(shadowed) is not None


def test_publishing_runs_nothing_of_it(
    shadowed: Connection, engine_database: str, connect: Callable[..., Connection]
) -> None:
    subscriptions = Subscriptions(Addressing(postgresql(), "public", {}), "")
    subscriptions.subscribe(connect(engine_database), "Sales", QUEUE, "Shop.Placed")
    assert subscriptions.subscribers(shadowed, ["Shop.Placed", "Shop.Event"]) == [QUEUE]


@pytest.mark.parametrize("times", [1, 6], ids=["once", "prepared"])
def test_the_lease_queue_runs_nothing_of_it(shadowed: Connection, times: int) -> None:
    """Its client works in its callers' connections."""
    leases = postgresql().leases
    for _ in range(times):
        assert leases.is_installed(shadowed)
        assert len(leases.publish(shadowed, ["1", "[2]", "3", "4"])) == 4
        ended, over, released, late = leases.claim(shadowed, 4, 60, 100)
        assert leases.renew(shadowed, [(ended.id, ended.token)], 60) == {ended.token}
        assert leases.finish(shadowed, [Ending(ended.id, ended.token, "failed")], "thumbs", "host")
        assert leases.release(shadowed, (released.id, released.token), 3600)
        assert leases.renew(shadowed, [(over.id, over.token), (late.id, late.token)], 1e-6) == {over.token, late.token}
        assert leases.finish(shadowed, [Ending(late.id, late.token, "success", "late")], "thumbs", "host")
        assert leases.expire(shadowed, 10, "cron").released == 1
        assert leases.renotify(shadowed, 10) == 1
        assert leases.outlook(shadowed).claim_in is not None
        leases.ask_for_dead(shadowed)
        (number,) = leases.publish(shadowed, ['{"kind": "render"}'])
        assert leases.seen_now(shadowed, number) == ""
        assert leases.end_seen(shadowed, number, "", HandEnding("failed", "ana", "by hand"))
        (again,) = leases.claim(shadowed, 1, 60)
        assert leases.release_seen(shadowed, again.id, again.token)
        (again,) = leases.claim(shadowed, 1, 60)
        assert leases.finish(shadowed, [Ending(again.id, again.token, "failed")], "thumbs", "host", False)
        *_, dead = leases.claim_dead(shadowed, 10, 60)
        leases.delay_dead(shadowed, dead.archive_id, 0)
        assert (leases.dead_due_in(shadowed) or 0) < 0
        for row in shadowed.all("select archive_id from messages.dead_delivery"):
            leases.end_dead(shadowed, row.archive_id)
        assert leases.dead_due_in(shadowed) is None


@pytest.mark.parametrize("times", [1, 6], ids=["once", "prepared"])
def test_an_outbox_runs_nothing_of_it(
    shadowed: Connection, engine_database: str, connect: Callable[..., Connection], times: int
) -> None:
    """Its statements run in the session that handlers write in."""
    store = postgresql().outbox_store(Address("public", "Sales_OutboxData"))
    store.create(connect(engine_database))
    for _ in range(times):
        one, operations = str(uuid.uuid4()), '[{"Body": ""}]'
        with shadowed.transaction_with(*store.finding(one)) as rows:
            assert rows == []
            shadowed.run(*store.storing(one, "[]", timedelta(seconds=1)))
            shadowed.run(*store.completing(one, operations))
        with shadowed.transaction_with(*store.finding(one)) as rows:
            assert [(row.id, row.dispatched, row.operations) for row in rows] == [(one, False, operations)]
        shadowed.run(*store.marking(one))
        with pytest.raises(DatabaseError, match="division by zero"):
            shadowed.run(*store.marking(one))


def test_the_archive_runs_nothing_of_it(shadowed: Connection) -> None:
    dead = DeadMessage(queue="Sales", message_id="42", headers="{}", body=b"{}", exception_type="Refused")
    archive_id = store.archive_failed(shadowed, dead)
    store.archive_failed(shadowed, dead)
    assert (
        store.succeeded(shadowed, RetriedFrom(archive_id, uuid.uuid4()), "42", Address("public", "Sales"), "Sales")
        is False
    )
