"""Sends in the caller's connection: we commit nothing, whatever settings it has (T8)."""

from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import dict_row, tuple_row

from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.transport.sessions.queue_notifications import channel
from pgqueue_admin.transport.wire import headers as h
from tests.transport.recording_observer import rows

PLACE = "Shop.PlaceOrder"
FACTORIES = {"plain": {}, "client side": {"cursor_factory": psycopg.ClientCursor, "row_factory": dict_row}}


@pytest.fixture(params=FACTORIES)
def caller(request, endpoint):
    his = {"options": "-c timezone=Asia/Tokyo -c search_path=nowhere", **FACTORIES[request.param]}
    with psycopg.connect(endpoint.dsn, **his) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize("many", [1, 3, bulk.MANY + 1])
def test_his_commit_sends(endpoint, caller, many):
    ids = endpoint.within(caller).send_many("Sales", range(many), type=PLACE, ttbr=timedelta(hours=1))
    assert rows(endpoint.dsn, "Sales") == []
    assert caller.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    caller.commit()
    stored = rows(endpoint.dsn, "Sales")
    assert [h.parse(row.headers)[h.MESSAGE_ID] for row in stored] == ids
    assert len({row.expires for row in stored}) == 1


def test_into_a_view_any_number_is_inserted(endpoint, caller, connection):
    """Even as its first statement: a refused COPY must not end its transaction."""
    connection.run('create view "Sold" as select * from "Sales"')
    endpoint.within(caller).send_many("Sold", range(bulk.MANY + 1), type=PLACE)
    assert rows(endpoint.dsn, "Sales") == []
    caller.commit()
    assert [row.body for row in rows(endpoint.dsn, "Sales")] == [b"%d" % each for each in range(bulk.MANY + 1)]


@pytest.mark.parametrize("many", [1, 3, bulk.MANY + 1])
def test_body_is_unchanged_without_standard_conforming_strings(endpoint, many):
    body = b"\xa9\\ \x00"
    with psycopg.connect(endpoint.dsn, options="-c standard_conforming_strings=off") as connection:
        endpoint.within(connection).send_many("Sales", [body] * many, type=PLACE)
    assert [row.body for row in rows(endpoint.dsn, "Sales")] == [body] * many


@pytest.mark.parametrize("many", [1, bulk.MANY + 1])
def test_his_rollback_does_not(endpoint, caller, many):
    caller.execute("create table public.his (number int)")
    endpoint.within(caller).send_many("Sales", range(many), type=PLACE)
    endpoint.within(caller).send("Sales", 1, type=PLACE, delay=timedelta(1))
    caller.rollback()
    assert rows(endpoint.dsn, "Sales") == []
    with endpoint.connect() as connection:
        assert connection.value('select count(*) from "Sales.Delayed"') == 0
        assert connection.value("select to_regclass('public.his')") is None


@pytest.mark.parametrize("many", [1, 3, bulk.MANY + 1])
def test_expiry_counts_from_the_start_of_his_transaction_in_utc(endpoint, caller, many):
    """T8: one by one, in a batch, and by COPY, which computes no expressions."""
    with caller.transaction():
        endpoint.within(caller).send_many("Sales", range(many), type=PLACE, ttbr=timedelta(seconds=90))
        left = "extract(epoch from expires - (now() at time zone 'utc'))::int"
        query = f'select distinct {left} as left from public."Sales"'
        assert [*psycopg.Cursor(caller, row_factory=tuple_row).execute(query)] == [(90,)]


def test_receivers_are_told_once_and_after_the_commit(endpoint, caller, connect, make_endpoint):
    endpoint.apply(type(endpoint.settings)(notify=True))
    ear = connect(endpoint.dsn)
    ear.listen(channel(endpoint.dialect, endpoint.queue.address))
    with caller.transaction():
        for number in range(3):
            endpoint.within(caller).send("Sales", number, type=PLACE)
        assert list(ear.notifications(timeout=0)) == []
    assert len(list(ear.notifications(timeout=20))) == 1


def test_autocommit_connection_commits_our_sends(endpoint):
    with psycopg.connect(endpoint.dsn, autocommit=True) as caller:
        endpoint.within(caller).send_many("Sales", range(3), type=PLACE)
        assert len(rows(endpoint.dsn, "Sales")) == 3
        with caller.transaction(force_rollback=True):
            endpoint.within(caller).send_many("Sales", range(bulk.MANY + 1), type=PLACE)
        assert len(rows(endpoint.dsn, "Sales")) == 3


def test_something_else_is_refused(endpoint):
    with pytest.raises(TypeError, match=r"psycopg\.Connection .* str"):
        endpoint.within(endpoint.dsn)
