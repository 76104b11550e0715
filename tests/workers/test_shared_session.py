"""Handlers that write through Django's models: rows, sends and the end of the message are one commit."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, InterfaceError, close_old_connections, connection, connections, transaction
from django.test import modify_settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint, MessageContext, Unrecoverable
from pgqueue_admin.transport.errors import HandlerFinished
from pgqueue_admin.workers.processes import django_sessions
from pgqueue_admin.workers.processes.django_transaction import within_atomic
from tests.databases import Databases
from tests.dialects.test_names_in_full import PATH, SHADOWS
from tests.transport.recording_observer import Spy, rows
from tests.waiting import until
from tests.workers.dying_models import BILL, ORDER, PLACES, bookshop, made, order

PROCESS = Path(__file__).with_name("dying_models.py")
WAYS: list[dict[str, Any]] = [
    {"mode": "sends_atomic_with_receive", "outbox": "off"},
    {"mode": "sends_atomic_with_receive", "outbox": "off", "batch_size": 5},
    {"mode": "receive_only", "outbox": "off"},
    {"mode": "receive_only", "outbox": "optimistic"},
    {"mode": "receive_only", "outbox": "pessimistic", "outbox_isolation": "serializable"},
]
Handler = Callable[[Any, MessageContext], None]


class Shop:
    """``run(handler)`` handles messages until none is left; ``errors`` has the exceptions of handlers."""

    def __init__(self, dsn: str, look: Connection):
        self.dsn, self.look, self.spy = dsn, look, Spy()
        self.joins = True
        self._made: list[Endpoint] = []
        Endpoint("Sales", dsn).create_queues()

    def run(self, handler: Handler, *numbers: int, **way: Any) -> None:
        row, declared = bookshop(**(way or WAYS[0]))
        declared.models_join = self.joins
        declared.handle(ORDER)(handler)
        endpoint = made(row, declared, self.spy)
        self._made.append(endpoint)
        endpoint.create_queues()
        endpoint.send_many("Bookshop", numbers or (1,), type=ORDER)
        endpoint.start()
        until(lambda: not rows(self.dsn, "Bookshop"))
        endpoint.stop()

    @property
    def orders(self) -> list[int]:
        text = "select first_name::int from pgqueue_console.auth_user order by 1"
        return [number for (number,) in self.look.all(text)]

    @property
    def errors(self) -> list[str]:
        return [str(error) for error in self.spy.errors]

    def sent(self) -> list[int]:
        return sorted(int(row.body) for row in rows(self.dsn, "Sales"))

    def close(self) -> None:
        for endpoint in self._made:
            endpoint.stop(drain_seconds=0)


@pytest.fixture
def shop(console_database: str, connect: Callable[..., Connection]) -> Iterator[Shop]:
    made = Shop(console_database, connect(console_database, for_handlers=True))
    yield made
    made.close()


@pytest.fixture(params=WAYS, ids=lambda way: " ".join(map(str, way.values())))
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def add(number: int) -> None:
    User.objects.create(username=uuid4().hex, first_name=str(number))


def test_rows_and_sends_are_one_commit(shop: Shop, way: dict[str, Any]) -> None:
    shop.run(order, *range(5), **way)
    assert (shop.orders, shop.sent(), shop.errors) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [])


def test_a_handler_that_raises_leaves_no_row(shop: Shop, way: dict[str, Any]) -> None:
    def raising(number: int, context: MessageContext) -> None:
        order(number, context)
        if number == 2:
            raise Unrecoverable("no")

    shop.run(raising, 1, 2, 3, **way)
    assert (shop.orders, shop.sent(), shop.errors) == ([1, 3], [1, 3], ["no"])
    assert len(rows(shop.dsn, "error")) == 1


def test_an_error_within_atomic_takes_its_block_alone(shop: Shop, way: dict[str, Any]) -> None:
    def twice(number: int, context: MessageContext) -> None:
        add(number)
        User.objects.create(username=f"only {number}", first_name=str(10 + number))
        with suppress(IntegrityError), transaction.atomic():
            add(100)
            User.objects.create(username=f"only {number}", first_name="100")
        add(20 + number)
        context.send("Sales", number, type=BILL)

    shop.run(twice, 1, 2, **way)
    assert (shop.orders, shop.sent(), shop.errors) == ([1, 2, 11, 12, 21, 22], [1, 2], [])


def test_an_error_caught_outside_of_atomic_fails_the_message(shop: Shop, way: dict[str, Any]) -> None:
    def careless(number: int, context: MessageContext) -> None:
        User.objects.create(username="one", first_name=str(number))
        with suppress(IntegrityError):
            User.objects.create(username="one", first_name=str(number))

    shop.run(careless, **way)
    assert shop.orders == []
    assert len(rows(shop.dsn, "error")) == 1
    assert all("was caught" in said for said in shop.errors)


def test_an_ignored_error_of_raw_sql_fails_the_message(shop: Shop, way: dict[str, Any]) -> None:
    def careless(number: int, context: MessageContext) -> None:
        add(number)
        with connection.cursor() as cursor, suppress(Exception):
            cursor.execute("select 1 / 0")

    shop.run(careless, **way)
    assert (shop.orders, len(rows(shop.dsn, "error"))) == ([], 1)


def left_open(context: MessageContext) -> None:
    transaction.atomic().__enter__()
    add(1)


def durable(context: MessageContext) -> None:
    with transaction.atomic(durable=True):
        add(1)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda context: transaction.commit(), "belongs to the message"),
        (lambda context: transaction.rollback(), "belongs to the message"),
        (lambda context: transaction.set_autocommit(True), "belongs to the message"),
        (lambda context: transaction.set_autocommit(False), "belongs to the message"),
        (lambda context: transaction.set_rollback(True), "current transaction"),
        (left_open, "returned within a block"),
        (durable, "durable"),
        (lambda context: connection.cursor().execute("commit"), ""),
        (lambda context: connection.connection.commit(), ""),
    ],
)
def test_transaction_of_a_message_is_ended_by_the_engine_only(shop: Shop, act: Any, says: str) -> None:
    """Whatever a handler tries, its row is not committed without the end of its message."""

    def trying(number: int, context: MessageContext) -> None:
        User.objects.count()
        act(context)
        add(2)

    shop.run(trying, **WAYS[3])
    assert len(rows(shop.dsn, "error")) == 1
    assert all(says in said for said in shop.errors)
    assert shop.orders == []


def test_sessions_are_not_closed_by_handlers(shop: Shop, way: dict[str, Any]) -> None:
    def closing(number: int, context: MessageContext) -> None:
        for close in (close_old_connections, connections.close_all, connection.close):
            add(number)
            close()
        add(number)

    shop.run(closing, **way)
    assert (shop.orders, shop.errors) == ([1, 1, 1, 1], [])


def test_on_commit_is_called_once_all_is_there(shop: Shop, way: dict[str, Any]) -> None:
    seen: list[tuple[int, list[int]]] = []

    def telling(number: int, context: MessageContext) -> None:
        transaction.on_commit(lambda: seen.append((number, shop.orders)))
        transaction.on_commit(lambda: seen[number])  # raises IndexError, which is ignored
        transaction.on_commit(lambda: add(30 + number))
        add(number)
        with suppress(ZeroDivisionError), transaction.atomic():
            transaction.on_commit(lambda: seen.append((100, [])))
            raise ZeroDivisionError
        if number == 7:
            raise Unrecoverable("no")

    shop.run(telling, 7, **way)
    assert seen == []
    shop.run(telling, 5, **way)
    until(lambda: shop.orders == [5, 35])
    ((number, there),) = seen
    assert (number, there) == (5, [5])


@pytest.mark.parametrize("way", [each for each in WAYS if each["outbox"] != "off"], ids=lambda way: way["outbox"])
def test_on_commit_is_called_though_what_was_sent_waits_for_its_queue(
    shop: Shop, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are committed by then, and the redelivered message is a duplicate, which runs no handler."""
    called: list[int] = []
    failed = shop.spy.failed

    def there_by_then(error: BaseException) -> None:
        failed(error)
        Endpoint("Later", shop.dsn).create_queues()

    def sending(number: int, context: MessageContext) -> None:
        add(number)
        context.send("Later", number, type=BILL)
        transaction.on_commit(lambda: called.append(number))

    monkeypatch.setattr(shop.spy, "failed", there_by_then)
    shop.run(sending, **way)
    assert shop.errors
    assert (shop.orders, called, len(rows(shop.dsn, "Later"))) == ([1], [1], 1)


def test_next_message_is_received_after_on_commit_calls(shop: Shop) -> None:
    """The next message is not received until the calls are done."""
    free: list[int] = []
    unlocked = 'select count(*) from (select 1 from "Bookshop" for update skip locked) as waiting'

    def calling(number: int, context: MessageContext) -> None:
        add(number)
        transaction.on_commit(lambda: free.append(shop.look.value(unlocked)))

    shop.run(calling, 1, 2, 3, 4, **WAYS[0], concurrency=1)
    assert free == [3, 2, 1, 0]


def test_models_cannot_write_after_the_handlers_own_commit(shop: Shop) -> None:
    """The write would commit by itself, under another search path."""

    def ending(number: int, context: MessageContext) -> None:
        add(number)
        assert context.connection
        context.connection.run("commit")
        add(100)

    shop.run(ending)
    assert 100 not in shop.orders
    assert any("belongs to the message" in said for said in shop.errors)


def test_on_commit_and_set_rollback_count_before_any_statement(shop: Shop, way: dict[str, Any]) -> None:
    called: list[int] = []

    def saying(number: int, context: MessageContext) -> None:
        transaction.on_commit(lambda: called.append(number))
        if number == 2:
            transaction.set_rollback(True)

    shop.run(saying, 1, 2, **way)
    until(lambda: called)
    assert called == [1]
    assert len(rows(shop.dsn, "error")) == 1


def test_models_and_own_statements_find_names_by_their_own_paths(shop: Shop, way: dict[str, Any]) -> None:
    """Even after a rollback to a savepoint, which also undoes a path set inside it."""
    shop.look.run("create table public.auth_user (first_name int)")
    shop.look.run("create table public.notes (number int)")

    def mixed(number: int, context: MessageContext) -> None:
        own = context.connection
        assert own
        own.run("insert into notes values (1)")
        with suppress(ZeroDivisionError), own.transaction():
            add(100)
            raise ZeroDivisionError
        add(number)
        with suppress(ZeroDivisionError), transaction.atomic():
            own.run("insert into notes values (100)")
            add(100)
            raise ZeroDivisionError
        own.run("insert into auth_user values (2)")
        add(number + 1)
        own.run("insert into notes values (3)")
        assert User.objects.count() == 2

    shop.run(mixed, **way)
    assert (shop.orders, shop.errors) == ([1, 2], [])
    assert shop.look.all("select number from public.notes order by 1") == [(1,), (3,)]
    assert shop.look.value("select array_agg(first_name) from public.auth_user") == [2]


def test_models_run_nothing_of_strangers_on_the_handlers_path(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]
) -> None:
    """Nor while the path changes."""
    shop.look.run(SHADOWS)
    shop.look.run("create table hostile.auth_user (like pgqueue_console.auth_user including all)")

    def asking(number: int, context: MessageContext) -> None:
        assert context.connection
        said = "select pg_catalog.current_setting('search_path')"
        assert context.connection.value(said).startswith("hostile")
        with transaction.atomic():
            order(number, context)
        assert User.objects.get(first_name=str(number), is_active=True, email="").first_name == str(number)
        assert context.connection.value(said).startswith("hostile")

    for alias in ("default", "queues"):
        monkeypatch.setitem(connections[alias].settings_dict, "URL_OPTIONS", PATH)
    shop.run(asking, 1, 2, **way)
    assert (shop.orders, shop.sent(), shop.errors) == ([1, 2], [1, 2], [])


def test_values_are_read_as_by_django(shop: Shop) -> None:
    seen: list[Any] = []

    def reading(number: int, context: MessageContext) -> None:
        for index in range(3):
            add(index)
        with connection.cursor() as cursor:
            cursor.execute("select '{\"a\": 1}'::jsonb, '10.0.0.1'::inet, 1 as one, 2 as one, %s", ["x"])
            seen.extend(cursor.fetchone())
        seen.append(sorted(each.first_name for each in User.objects.iterator(chunk_size=1)))
        seen.append(User.objects.first().date_joined.utcoffset().total_seconds())  # type: ignore[union-attr]

    shop.run(reading)
    assert shop.errors == []
    assert seen == ['{"a": 1}', "10.0.0.1", 1, 2, "x", ["0", "1", "2"], 0.0]


def test_hstore_converts_in_djangos_session_only(shop: Shop) -> None:
    seen: list[Any] = []
    hstore: Any = [{"c": "2"}]
    shop.look.run("create extension hstore schema pgqueue_console")
    shop.look.run("create extension citext schema pgqueue_console")

    def reading(number: int, context: MessageContext) -> None:
        assert context.connection
        with connection.cursor() as cursor:
            cursor.execute("select 'a=>1'::hstore, array['B']::citext[], (%s::hstore)::text", hstore)
            seen.extend(cursor.fetchone())
        seen.append(context.connection.raw.execute("select 'a=>1'::pgqueue_console.hstore").fetchone()[0])

    with modify_settings(INSTALLED_APPS={"append": "django.contrib.postgres"}):
        shop.run(reading)
    assert shop.errors == []
    assert seen == [{"a": "1"}, ["B"], '"c"=>"2"', '"a"=>"1"']


def test_connections_kept_by_a_handler_end_with_its_message(shop: Shop) -> None:
    kept: list[Any] = []

    def keeping(number: int, context: MessageContext) -> None:
        if kept:
            wrapper, cursor, found = kept
            for use in (wrapper.cursor, lambda: cursor.execute("select 1"), lambda: next(found)):
                with pytest.raises((HandlerFinished, InterfaceError)):
                    use()
            return add(number)
        add(10)
        add(11)
        found = User.objects.iterator(chunk_size=1)
        next(found)
        kept.extend([connections["default"], connection.cursor(), found])

    shop.run(keeping, 1, 2, mode="sends_atomic_with_receive", outbox="off", concurrency=1)
    assert (shop.orders, shop.errors) == ([2, 10, 11], [])


def test_untouched_connection_is_reused_and_keeps_no_state(shop: Shop) -> None:
    """Creating one costs more than everything else for a message without models."""
    lent, called = list[Any](), list[int]()

    def some_use_models(number: int, context: MessageContext) -> None:
        lent.append(connections["default"])
        if number == 3:
            transaction.on_commit(lambda: called.append(number))
        if number == 4:
            connections["default"].execute_wrappers.append(lambda *given: called.append(40))
        if number >= 5:
            add(number)

    shop.run(some_use_models, *range(1, 7), mode="receive_only", outbox="optimistic", concurrency=1)
    one, two, three, four, five, six = lent
    assert one is two is three
    assert len({id(each) for each in (three, four, five, six)}) == 4
    assert (shop.orders, shop.errors, called) == ([5, 6], [], [3])


def _within_a_block_of_the_session(number: int, context: MessageContext) -> None:
    assert context.connection
    with context.connection.transaction() as own:
        own.run("insert into notes values (1)")
        add(number)
        own.run("insert into notes values (2)")


def _by_another_name(number: int, context: MessageContext) -> None:
    """Rename the session: its name tells which path is set."""
    assert context.connection
    for _ in range(2):
        add(number)
        with connection.cursor() as cursor:
            cursor.execute("set local application_name = 'a job'")
    context.connection.run("insert into notes values (1)")
    with suppress(ZeroDivisionError), transaction.atomic():
        add(100)
        raise ZeroDivisionError
    context.connection.run("insert into notes values (2)")


def _in_a_pipeline(number: int, context: MessageContext) -> None:
    """In a pipeline the server reports a new name only at the end."""
    assert context.connection
    with context.connection.raw.pipeline():
        add(number)
        add(number)
    for note in (1, 2):
        context.connection.run("insert into notes values (%s)", [note])


@pytest.mark.parametrize("handler", [_within_a_block_of_the_session, _by_another_name, _in_a_pipeline])
def test_handlers_have_their_path_again(shop: Shop, way: dict[str, Any], handler: Handler) -> None:
    shop.look.run("create table public.notes (number int)")
    shop.run(handler, **way)
    assert shop.errors == []
    assert shop.look.all("select number from public.notes order by 1") == [(1,), (2,)]


def test_the_next_message_of_a_batch_has_the_handlers_path(shop: Shop) -> None:
    seen: list[str] = []

    def naming(number: int, context: MessageContext) -> None:
        if number > 1:
            assert context.connection
            return seen.append(context.connection.value("select pg_catalog.current_setting('search_path')"))
        add(number)
        with connection.cursor() as cursor:
            cursor.execute("set local application_name = 'a job'")

    shop.run(naming, 1, 2, **WAYS[1], concurrency=1)
    assert len(seen) == 1
    assert "pgqueue_console" not in seen[0]


def test_the_session_within_a_block_is_over_with_its_message(shop: Shop) -> None:
    kept: list[Any] = []

    def keeping(number: int, context: MessageContext) -> None:
        for own in kept:
            with pytest.raises(HandlerFinished):
                own.run("select 1")
        assert context.connection
        with context.connection.transaction() as own:
            kept.append(own)

    shop.run(keeping, 1, 2)
    assert shop.errors == []


def test_an_exit_on_commit_ends_that_call_alone(shop: Shop, way: dict[str, Any]) -> None:
    called: list[int] = []

    def exiting(number: int, context: MessageContext) -> None:
        transaction.on_commit(lambda: sys.exit(1))
        transaction.on_commit(lambda: called.append(number))

    shop.run(exiting, 1, 2, **way)
    until(lambda: sorted(called) == [1, 2])


def test_an_answer_that_nobody_reads_on_does_not_hang(shop: Shop) -> None:
    kept: list[Any] = []

    def keeping(number: int, context: MessageContext) -> None:
        add(1)
        add(2)
        assert context.connection
        found = User.objects.iterator(chunk_size=1)
        answer = context.connection.raw.cursor().stream("select generate_series(1, 100000)")
        kept.extend([found, next(found), answer, next(answer)])

    shop.run(keeping, **WAYS[0], immediate_retries=0)
    kept[2].close()  # before the cursor, which holds the driver's lock
    assert (shop.orders, len(rows(shop.dsn, "error"))) == ([], 1)


def test_a_forked_child_leaves_the_session_alone(shop: Shop, way: dict[str, Any]) -> None:
    """The parent would not know of a path that the child restored."""

    def forking(number: int, context: MessageContext) -> None:
        add(1)
        if (child := os.fork()) == 0:
            return
        os.waitpid(child, 0)
        add(2)

    shop.run(forking, **way)
    assert (shop.orders, shop.errors) == ([1, 2], [])


@pytest.mark.parametrize("way", WAYS[3:], ids=["optimistic", "pessimistic"])
def test_a_conflict_that_models_meet_is_no_failure_beside_an_outbox(shop: Shop, way: dict[str, Any]) -> None:
    attempts: list[int] = []

    def conflicting(number: int, context: MessageContext) -> None:
        add(number)
        attempts.append(number)
        if len(attempts) < 4:  # more attempts than retries
            with connection.cursor() as cursor:
                cursor.execute("do $$ begin raise 'another was first' using errcode = '40001'; end $$")

    shop.run(conflicting, **way)
    assert (shop.orders, len(attempts), shop.errors) == ([1], 4, [])


def test_a_session_that_is_lost_is_no_failure_of_the_message(shop: Shop, way: dict[str, Any]) -> None:
    attempts: list[int] = []

    def losing(number: int, context: MessageContext) -> None:
        attempts.append(number)
        with transaction.atomic():
            add(number)
            if len(attempts) < 4:  # more attempts than retries
                with connection.cursor() as cursor:
                    cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    shop.run(losing, **way)
    assert (shop.orders, len(attempts), shop.errors) == ([1], 4, [])


def test_sends_within_atomic_join_as_well(shop: Shop) -> None:
    def placing(number: int, context: MessageContext) -> None:
        sender = Endpoint("Shop.Web", shop.dsn, send_only=True)
        with transaction.atomic():
            add(number)
            within_atomic(sender).send("Sales", number, type=BILL)
        if number == 2:
            raise Unrecoverable("no")

    shop.run(placing, 1, 2)
    assert (shop.orders, shop.sent()) == ([1], [1])


def no(number: int, context: MessageContext) -> None:
    order(number, context)
    raise Unrecoverable("no")


def test_in_mode_none_models_commit_by_themselves(shop: Shop) -> None:
    shop.run(no, mode="none", outbox="off", immediate_retries=0)
    assert shop.orders == [1]


def test_endpoint_that_opts_out_commits_models_by_itself(shop: Shop) -> None:
    shop.joins = False
    shop.run(no, **WAYS[3])
    assert shop.orders == [1]


@pytest.mark.parametrize("outbox", ["off", "optimistic"])
def test_models_in_another_database_are_said_to_be_apart(
    shop: Shop, databases: Databases, caplog: pytest.LogCaptureFixture, outbox: str
) -> None:
    with databases.clone("engine") as queues, databases.as_django(queues, ("queues",)):
        elsewhere = Shop(queues, shop.look)
        with caplog.at_level(logging.WARNING):
            elsewhere.run(no, mode="receive_only", outbox=outbox)
        elsewhere.close()
    assert shop.orders == [1]
    said = [record.getMessage() for record in caplog.records if record.msg == django_sessions.APART]
    assert len(said) == (outbox != "off")


@pytest.mark.parametrize(
    ("outbox", "where"), [(outbox, where) for outbox, places in PLACES.items() for where in places]
)
def test_killed_at_a_boundary_all_is_there_once(shop: Shop, outbox: str, where: str) -> None:
    mode = "sends_atomic_with_receive" if outbox == "off" else "receive_only"
    endpoint = made(*bookshop(mode, outbox))
    endpoint.create_queues()
    endpoint.send_many("Bookshop", range(10), type=ORDER)
    with started(shop.dsn, where, mode, outbox) as dying:
        assert dying.wait(60) == -signal.SIGKILL
    with started(shop.dsn, "-", mode, outbox) as survivor:
        try:
            until(lambda: not rows(shop.dsn, "Bookshop"))
        finally:
            survivor.kill()
    assert (shop.orders, shop.sent()) == ([*range(10)], [*range(10)])


def started(dsn: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROCESS.parents[2]),
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings",
        "DATABASE_URL": dsn,
        "QUEUES_URL": dsn,
        "SECRET_KEY": "of the tests",
    }
    return subprocess.Popen([sys.executable, str(PROCESS), *arguments], env=environment)
