"""The example with SQLAlchemy's session: its rows, the message's record and the sends are one commit."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint, Unrecoverable
from tests.outbox.conftest import CHARGE, CHARGED, MakeEndpoint
from tests.outbox.test_receive import charges
from tests.transport.recording_observer import Spy, rows
from tests.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "sqlalchemy_session.py"
WAYS: list[dict[str, Any]] = [
    {"outbox": Outbox()},
    {"outbox": Outbox(concurrency="pessimistic", isolation="serializable")},
    {"outbox": None, "transaction_mode": "sends_atomic_with_receive"},
    {"outbox": None, "transaction_mode": "sends_atomic_with_receive", "batch_size": 5},
]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    found = importlib.util.spec_from_file_location("sqlalchemy_session", EXAMPLE)
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def run(make: MakeEndpoint, connection: Connection) -> Callable[..., Endpoint]:
    connection.run("alter table charges add id int generated always as identity, add unique (number)")

    def run(way: dict[str, Any], handler: Any, *numbers: int) -> Endpoint:
        endpoint = make()
        endpoint.apply(replace(endpoint.settings, **way))
        endpoint.handlers.handle(CHARGE)(handler)
        endpoint.send_many("Billing", numbers, type=CHARGE)
        endpoint.start()
        until(lambda: not rows(endpoint.dsn, "Billing"))
        endpoint.stop()
        return endpoint

    return run


def sent(dsn: str) -> list[int]:
    return sorted(int(row.body) for row in rows(dsn, "Sales"))


@pytest.mark.parametrize("way", WAYS)
def test_rows_and_sends_are_one_commit(
    run: Any, example: ModuleType, connection: Connection, database: str, spy: Spy, way: dict[str, Any]
) -> None:
    def failing(number: int, context: Any) -> None:
        example.charge(number, context)
        if number == 3:
            raise Unrecoverable("no")

    run(way, failing, *range(10))
    assert charges(connection) == [number for number in range(10) if number != 3]
    assert sent(database) == [number for number in range(10) if number != 3]
    assert [str(error) for error in spy.errors] == ["no"]


@pytest.mark.parametrize("way", WAYS)
def test_an_error_within_begin_nested_takes_its_block_alone(
    run: Any, example: ModuleType, connection: Connection, database: str, spy: Spy, way: dict[str, Any]
) -> None:
    def twice(number: int, context: Any) -> None:
        with example.session_of(context) as session:
            session.add(example.Charge(number=number))
            session.flush()
            with pytest.raises(IntegrityError), session.begin_nested():
                session.add_all([example.Charge(number=100 + number), example.Charge(number=number)])
            assert session.scalar(select(func.count()).select_from(example.Charge)) >= 1
        with pytest.raises(IntegrityError), example.session_of(context) as session:
            session.add_all([example.Charge(number=200 + number), example.Charge(number=number)])
        context.send("Sales", number, type=CHARGED)

    run(way, twice, 1, 2, 3)
    assert (charges(connection), sent(database), spy.errors) == ([1, 2, 3], [1, 2, 3], [])


def test_its_handlers_of_notices_do_not_pile_up(run: Any, example: ModuleType) -> None:
    found: list[int] = []

    def counting(number: int, context: Any) -> None:
        example.charge(number, context)
        found.append(len(context.connection.raw._notice_handlers))

    run({"outbox": Outbox(), "concurrency": 1}, counting, *range(5))
    assert len(set(found[1:])) == 1


def test_sqlalchemy_example_runs(database: str, connection: Connection) -> None:
    Endpoint("Sales", database).create_queues()
    with subprocess.Popen([sys.executable, str(EXAMPLE), database], env={"PYTHONPATH": str(EXAMPLE.parents[1])}) as it:
        try:
            until(lambda: sent(database) == [42])
        finally:
            it.kill()
    assert charges(connection) == [42]
