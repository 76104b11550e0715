"""The recorded shop is restored as recorded, or with its times shifted to another now."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from pgqueue_admin.demo import restore_recording
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.postgresql.addressing import quote
from pgqueue_admin.transport.wire import headers
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.monitor.expected import EXPECTED

TABLES = {
    quote(each["schema"]) + "." + quote(each["table"]): each["rows"]
    for noun in ("queues", "delayed", "outbox", "sagas", "other_tables")
    for each in EXPECTED[noun]
}
LATER = timedelta(days=100, hours=1, microseconds=7)


@pytest.fixture
def as_recorded(recorded_database: str, connect: Callable[..., Connection]) -> Connection:
    return connect(recorded_database)


@pytest.fixture
def shifted(connection: Connection) -> Connection:
    restore_recording.restore(connection, restore_recording.RECORDED_AT + LATER)
    return connection


@pytest.mark.parametrize("which", ["as_recorded", "shifted"])
def test_every_row_is_there(which: str, request: pytest.FixtureRequest) -> None:
    connection: Connection = request.getfixturevalue(which)
    assert {table: connection.value(f"select count(*) from {table}") for table in TABLES} == TABLES
    assert connection.value("select count(*) from error where bodystring is null") == 0  # the server fills it


def test_columns_are_shifted(as_recorded: Connection, shifted: Connection) -> None:
    for query in (
        """select id, expires at time zone 'UTC' as at from "Sales" where expires is not null order by id limit 50""",
        """select id, due as at from "Sales.Delayed" order by id""",
    ):
        before, after = as_recorded.all(query), shifted.all(query)
        assert before
        assert [(row.id, row.at + LATER) for row in before] == [(row.id, row.at) for row in after]


def test_times_in_headers_are_shifted_and_nothing_else_is(as_recorded: Connection, shifted: Connection) -> None:
    for table in ("error", "Poison.OddValues", "Poison.MalformedHeaders"):
        query = f'select headers from "{table}" order by seq limit 100'
        for before, after in zip(as_recorded.all(query), shifted.all(query), strict=True):
            assert restore_recording._WIRE_TIME.sub(b"T", before.headers.encode()) == restore_recording._WIRE_TIME.sub(
                b"T", after.headers.encode()
            )
    sent = [
        parse_time(headers.parse(c.value("select headers from error where seq = 1"))[headers.TIME_SENT])
        for c in (as_recorded, shifted)
    ]
    assert sent[0]
    assert sent[1] == sent[0] + LATER


@pytest.mark.parametrize(
    "query",
    [
        'select array_agg(expires::text order by seq) from "Poison.Expires"',
        """select array_agg(headers order by seq) from "Poison.OddValues" where seq in (5, 6)""",
        """select due::text from "Poison.Delayed" where due > '9999-01-01'""",
    ],
)
def test_times_beyond_reach_stay(as_recorded: Connection, shifted: Connection, query: str) -> None:
    assert as_recorded.value(query) == shifted.value(query)


def test_a_second_restore_is_refused_and_changes_nothing(as_recorded: Connection) -> None:
    with pytest.raises(AlreadyExists):
        restore_recording.restore(as_recorded)
    assert as_recorded.value('select count(*) from "Sales"') == 20_450
