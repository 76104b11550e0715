"""The dump for real endpoints restores into an empty database and matches its manifest."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.wire import dump, make
from bench.wire.shop import TRACE
from bench.wire.waiting import ODD
from pgqueue_admin.demo import restore_recording
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.databases import Databases
from tests.transport.recording_observer import rows
from tests.transport.table_catalog import catalog


@pytest.fixture(scope="module")
def source(databases: Databases) -> Iterator[str]:
    with databases.clone("empty") as dsn:
        yield dsn


@pytest.fixture(scope="module")
def made(source: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make.write(source, tmp_path_factory.mktemp("wire"))


@pytest.fixture(scope="module")
def restored(made: tuple[Path, Path], databases: Databases) -> Iterator[str]:
    with (
        databases.clone("empty") as dsn,
        postgresql().connect(dsn, for_handlers=True) as connection,
        made[0].open("rb") as lines,
    ):
        for statement in restore_recording.statements(lines):
            if copy := restore_recording._COPY.fullmatch(statement):
                connection.copy_in(statement, restore_recording.rows(lines, copy["columns"], None))
            else:
                connection.run(statement)
        yield dsn


def test_dump_restores_to_its_manifest(
    made: tuple[Path, Path], restored: str, source: str, connect: Callable[..., Connection]
) -> None:
    connection, original = connect(restored), connect(source)
    manifest = json.loads(made[1].read_text(encoding="utf-8"))
    dialect = postgresql()
    for canonical, number in manifest["tables"].items():
        address = dialect.parse_address(canonical)
        assert dump.rows_of(connection)[address] == number
        assert catalog(connection, address) == catalog(original, address), canonical
    for case in manifest["cases"]:
        query = f"select count(*) from {case['table']} where headers like %(like)s"
        assert connection.value(query, {"like": case["headers_like"]}) == case["rows"], case
    for table in ("Sales", "Sales.Delayed", "error", "Billing", "Strange", "Strange.Delayed"):
        everything = f"select md5(string_agg(t::text, '|' order by id)) from \"{table}\" t"
        assert connection.value(everything) == original.value(everything), table
    assert (
        connection.value("select nextval('\"Sales_seq_seq\"')") == max(row.seq for row in rows(restored, "Sales")) + 1
    )


def test_manifest_explains_every_row_of_the_dump(made: tuple[Path, Path]) -> None:
    manifest = json.loads(made[1].read_text(encoding="utf-8"))
    explained = {table: 0 for table in manifest["tables"]}
    for case in manifest["cases"]:
        explained[case["table"]] += case["rows"]
    explained['"public"."SubscriptionRouting"'] = 2
    assert explained == manifest["tables"]
    assert all(case["why"] and case["endpoint"] for case in manifest["cases"])


def test_unreadable_rows_are_kept_unchanged(
    made: tuple[Path, Path], restored: str, connect: Callable[..., Connection]
) -> None:
    """Header texts null and {}, and a due NULL body: unchanged in a queue of their own, and in the error queue."""
    connection = connect(restored)
    manifest = json.loads(made[1].read_text(encoding="utf-8"))
    where = {(case["name"], case["table"]): case["headers_like"] for case in manifest["cases"]}
    raw = connection.all('select headers, body from "Strange" order by seq')
    assert [(row.headers, row.body) for row in raw] == [("null", b"{}"), ("{}", b"{}")]
    (due,) = connection.all('select body, due <= now() as is_due from "Strange.Delayed"')
    assert (due.body, due.is_due) == (None, True)
    for name, body in (("headers-null", b"{}"), ("headers-none", b"{}"), ("due-body-null", b"")):
        like = where[name, '"public"."error"']
        (failed,) = connection.all("select headers, body from error where headers like %s", [like])
        assert failed.body == body
        assert h.parse(failed.headers)[h.FAILED_Q] == '"public"."Sales"'
    assert {table for name, table in where if name == "headers-null"} == {'"public"."Strange"', '"public"."error"'}


def test_a_traceparent_is_passed_on(restored: str) -> None:
    """From the sender, through a handler that sends, into the audit and error queues."""

    def traced(table: str) -> h.Headers:
        (headers,) = [h.parse(row.headers) for row in rows(restored, table) if '"Wire.Case":"traced"' in row.headers]
        return headers

    trace = TRACE[h.TRACE_PARENT]
    assert [traced(table)[h.TRACE_PARENT] for table in ("Sales", "Billing", "audit", "error")] == [trace] * 4
    assert traced("error")[h.START_NEW_TRACE] == "True"


def test_every_row_can_be_received(restored: str, connect: Callable[..., Connection]) -> None:
    """Received by the engine: headers parse, times parse, and expired messages have expired."""
    connection = connect(restored)
    queue, received = TableQueue(postgresql(), Address("public", "Sales")), []
    with connection.transaction():
        while message := queue.receive(connection):
            received.append(message)
    assert [each.unreadable for each in received if each.unreadable] == []
    assert {each.headers["Wire.Case"] for each in received if each.expired} == {"expired"}
    assert all(parse_time(each.headers[h.TIME_SENT]) for each in received)
    (odd,) = [each.headers for each in received if each.headers["Wire.Case"] == "odd-headers"]
    assert {name: odd[name] for name in ODD} == ODD
    assert DelayedTable(postgresql(), queue.address).move_due(connection) == 5
