"""Sends with the caller's own commit: none before it, none without it, and none lost after it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.settings import SettingsRefused
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint
from tests.transport.recording_observer import rows
from tests.waiting import until


@pytest.fixture(params=["beside the queues", "elsewhere"])
def storage(request: pytest.FixtureRequest, database: str, engine_database: str) -> str:
    return database if request.param == "beside the queues" else engine_database


@pytest.fixture
def caller(storage: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(storage) as connection:
        yield connection


@pytest.fixture
def web(make: MakeEndpoint, storage: str, database: str) -> Endpoint:
    return make("Web", outbox=Outbox(dsn="" if storage == database else storage, relay_after=timedelta(seconds=0.1)))


def sold(dsn: str) -> list[bytes]:
    return [row.body for row in rows(dsn, "Sales")]


def test_committed_sends_go_at_once(web: Endpoint, caller: psycopg.Connection[Any], database: str) -> None:
    with web.transactional_session(caller) as session:
        caller.execute("create table public.orders (number integer)")
        session.send("Sales", 1, type=CHARGE)
        session.send("Sales", 2, type=CHARGE, immediate=True)
    assert sold(database) == [b"2"]
    session.dispatch()
    assert sold(database) == [b"2"], "it is not committed yet"
    caller.commit()
    session.dispatch()
    session.dispatch()
    assert sold(database) == [b"2", b"1"]


def test_a_rollback_and_an_error_send_nothing(web: Endpoint, caller: psycopg.Connection[Any], database: str) -> None:
    with suppress(ZeroDivisionError), web.transactional_session(caller) as session:
        session.send("Sales", 1, type=CHARGE)
        raise ZeroDivisionError
    caller.commit()
    session.dispatch()
    with web.transactional_session(caller) as session:
        session.send("Sales", 2, type=CHARGE)
    caller.rollback()
    session.dispatch()
    assert sold(database) == []


def test_sends_without_a_dispatch_after_the_commit_go_by_the_relay(
    web: Endpoint, caller: psycopg.Connection[Any], database: str
) -> None:
    with web.transactional_session(caller) as session:
        session.publish(1, type=CHARGE)  # no subscribers: nothing is sent
        session.send("Sales", 1, type=CHARGE)
    caller.commit()
    web.start()
    until(lambda: sold(database) == [b"1"])


def test_without_an_outbox_it_is_refused(make: MakeEndpoint, caller: psycopg.Connection[Any]) -> None:
    plain = make("Plain")
    plain.apply(replace(SETTINGS, outbox=None))
    with pytest.raises(SettingsRefused, match="Plain has no outbox"):
        plain.transactional_session(caller)


def test_session_without_sends_writes_nothing(
    web: Endpoint, caller: psycopg.Connection[Any], connect: Any, storage: str
) -> None:
    with web.transactional_session(caller):
        pass
    caller.commit()
    session: Connection = connect(storage)
    assert session.value('select count(*) from public."Web_OutboxData"') == 0
