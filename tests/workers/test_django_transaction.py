"""Sends in Django's transaction.atomic: rolled back or committed with it, and notified once."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint, EndpointSettings
from pgqueue_admin.transport.sessions.queue_notifications import channel
from pgqueue_admin.workers.processes.django_transaction import transactional_session, within_atomic
from tests.transport.recording_observer import rows

PLACE = "Shop.PlaceOrder"


@pytest.fixture
def web(console_database: str) -> Iterator[Endpoint]:
    endpoint = Endpoint("Web", console_database)
    endpoint.create_queues()
    with endpoint.connect() as connection:
        connection.run("create table public.orders (number int)")
    yield endpoint
    endpoint.stop()


def order(number: int) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("insert into public.orders values (%s)", [number])


def orders() -> list[int]:
    with connections["default"].cursor() as cursor:
        cursor.execute("select number from public.orders order by 1")
        return [number for (number,) in cursor.fetchall()]


def place(web: Endpoint, number: int, **options: Any) -> str:
    order(number)
    return within_atomic(web).send("Web", number, type=PLACE, **options)


def test_the_commit_sends_and_tells_once(web: Endpoint, connect: Callable[..., Connection]) -> None:
    ear = connect(web.dsn)
    ear.listen(channel(web.dialect, web.queue.address))
    with transaction.atomic():
        place(web, 1)
        place(web, 2)
        assert rows(web.dsn, "Web") == []
    assert [row.body for row in rows(web.dsn, "Web")] == [b"1", b"2"]
    assert len(list(ear.notifications(timeout=20))) == 1
    assert list(ear.notifications(timeout=0)) == []


def test_a_rollback_loses_the_send_with_the_rest(web: Endpoint, connect: Callable[..., Connection]) -> None:
    ear = connect(web.dsn)
    ear.listen(channel(web.dialect, web.queue.address))
    with suppress(ZeroDivisionError), transaction.atomic():
        place(web, 1)
        raise ZeroDivisionError
    assert (rows(web.dsn, "Web"), orders()) == ([], [])
    with transaction.atomic():
        place(web, 2)
        with suppress(ZeroDivisionError), transaction.atomic():  # only the savepoint is rolled back
            place(web, 3)
            raise ZeroDivisionError
        place(web, 4)
    assert [row.body for row in rows(web.dsn, "Web")] == [b"2", b"4"]
    assert orders() == [2, 4]
    assert len(list(ear.notifications(timeout=20))) == 1


def test_outside_of_a_block_each_send_is_its_own_commit(web: Endpoint) -> None:
    place(web, 1)
    assert [row.body for row in rows(web.dsn, "Web")] == [b"1"]


def test_immediate_leaves_whatever_becomes_of_the_block(web: Endpoint) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        place(web, 1, immediate=True)
        raise ZeroDivisionError
    assert (len(rows(web.dsn, "Web")), orders()) == (1, [])


def test_delayed_and_published_in_the_block(web: Endpoint) -> None:
    web.subscribe("Shop.OrderPlaced")
    with transaction.atomic():
        place(web, 1, delay=timedelta(hours=1))
        assert within_atomic(web).publish({}, type="Shop.OrderPlaced")
    with web.connect() as connection:
        assert connection.value('select count(*) from "Web.Delayed"') == 1
    assert len(rows(web.dsn, "Web")) == 1


def test_a_broken_block_is_refused_as_django_does(web: Endpoint) -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(DatabaseError, match="atomic"):
            place_only(web)
    assert rows(web.dsn, "Web") == []


def place_only(web: Endpoint) -> None:
    within_atomic(web).send("Web", 1, type=PLACE)


@pytest.fixture
def with_outbox(web: Endpoint) -> Endpoint:
    """The outbox is in the database of the models; here that is also the queues' database."""
    web.apply(EndpointSettings(transaction_mode="receive_only", outbox=Outbox()))
    web.create_queues()
    return web


def test_models_and_sends_through_an_outbox_commit_together(with_outbox: Endpoint) -> None:
    with suppress(ZeroDivisionError), transaction.atomic(), transactional_session(with_outbox) as session:
        order(1)
        session.send("Web", 1, type=PLACE)
        raise ZeroDivisionError
    with transaction.atomic(), transactional_session(with_outbox) as session:
        order(2)
        session.send("Web", 2, type=PLACE)
        assert rows(with_outbox.dsn, "Web") == []
    assert orders() == [2]
    assert [row.body for row in rows(with_outbox.dsn, "Web")] == [b"2"]


def test_an_outbox_outside_of_atomic_is_refused(with_outbox: Endpoint) -> None:
    with (
        pytest.raises(transaction.TransactionManagementError, match="is for a block"),
        transactional_session(with_outbox),
    ):
        pass
