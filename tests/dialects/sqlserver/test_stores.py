"""What SQL Server's stores do before and after the server; tests/dialects/test_stores.py runs them on one."""

import sys
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

import pgqueue_admin.dialects.sqlserver
from pgqueue_admin.dialects import Address, dialect_for
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.errors import (
    AlreadyExists,
    DatabaseDown,
    DatabaseError,
    Deadlock,
    Locked,
    NotPermitted,
    SchemaMissing,
    TableChanged,
    TableMissing,
)
from pgqueue_admin.dialects.sqlserver import connect_options
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.dialects.sqlserver.error_mapping import by_number
from pgqueue_admin.dialects.sqlserver.queue_store import AT_ONCE, received

SHOP = SQLServer("shop")
SALES = Address("dbo", "Sales")
CORRELATION_ID, REPLY_TO = "NServiceBus.CorrelationId", "NServiceBus.ReplyToAddress"


def row(headers: str, correlation_id: str | None = None, reply_to: str | None = None) -> Any:
    return SimpleNamespace(
        id="1", seq=1, expired=0, headers=headers, body=b"", correlation_id=correlation_id, reply_to=reply_to
    )


def test_many_rows_are_as_many_statements_as_parameters_allow() -> None:
    commands = SHOP.queue_store(SALES).insertions([("{}", b"", None)] * (2 * AT_ONCE + 1))
    assert [len(params) for _, params in commands if isinstance(params, dict)] == [3 * AT_ONCE, 3 * AT_ONCE, 3]
    assert 3 * AT_ONCE < 2100


def test_single_row_is_one_insert_with_a_server_generated_id() -> None:
    ((query, params),) = SHOP.queue_store(SALES).insertions([("{}", b"x", 5)])
    assert params == {"id": None, "ttbr_ms": 5, "headers": "{}", "body": b"x"}
    assert "newid()" in query


class Asked:
    """Answers each query for the column with the next of ``answers``."""

    def __init__(self, *answers: int):
        self.answers = list(answers)

    def value(self, query: str, params: Any) -> int:
        assert params == {"table": "[dbo].[Sales]"}
        return self.answers.pop(0)


@pytest.mark.parametrize("rows", [1, 2])
def test_recoverable_column_is_looked_up_once_and_after_a_refusal(rows: int) -> None:
    """Sheet 10.2: errors 207 and 515 that name it; other errors tell nothing about it."""
    session, store = Asked(1, 0), SHOP.queue_store(SALES)
    ((query, _),) = store.insertions([("{}", b"", None)] * rows)
    assert "Recoverable" in query.form_for(session)
    query.refused(by_number(515, "Cannot insert the value NULL into column 'Headers'"))
    query.refused(by_number(1205, "Recoverable was deadlocked"))
    ((again, _),) = store.insertions([("{}", b"", None)])
    assert "Recoverable" in again.form_for(session)
    again.refused(by_number(207, "Invalid column name 'Recoverable'."))
    assert "Recoverable" not in query.form_for(session)
    assert session.answers == []


def test_columns_of_old_senders_count_where_a_header_is_missing() -> None:
    """S2."""
    got = received(row('{"a":"b"}', "c-1", "Billing@host"))
    assert orjson.loads(got.headers) == {"a": "b", CORRELATION_ID: "c-1", REPLY_TO: "Billing@host"}
    said = f'{{"{CORRELATION_ID}":"own","{REPLY_TO}":"own"}}'
    assert orjson.loads(received(row(said, "c-1", "Billing@host")).headers) == orjson.loads(said)
    assert received(row('{"a": "b"}')).headers == '{"a": "b"}', "as it came"


@pytest.mark.parametrize("headers", ["no json", "[1]", "null", "3"])
def test_headers_that_are_no_json_object_stay_unchanged(headers: str) -> None:
    assert received(row(headers, "c-1", "Billing")).headers == headers


def test_an_instant_is_sent_in_utc_without_a_zone() -> None:
    at = datetime(2026, 7, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    store = SHOP.delayed_store(Address("dbo", "Sales.Delayed"), SALES)
    ((_, params),) = store.insertions([DelayedRow("{}", b"", at, None), DelayedRow("{}", b"", None, 5)])
    assert isinstance(params, dict)
    assert params["at_0"] == datetime(2026, 7, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    assert (params["at_1"], params["delay_ms_1"]) == (None, 5)


@pytest.mark.parametrize("schema", ["dbo", "[dbo]@[shop]"])
def test_the_lock_of_a_creation_is_the_originals(schema: str) -> None:
    """By the table's full name, so that the original's installers and ours wait for each other."""
    assert SHOP.in_full(Address(schema, "Sales")) == "[shop].[dbo].[Sales]"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (208, TableMissing),
        (207, TableChanged),
        (515, TableChanged),
        (1205, Deadlock),
        (3960, Deadlock),
        (1222, Locked),
        (2714, AlreadyExists),
        (1913, AlreadyExists),
        (2627, AlreadyExists),
        (2601, AlreadyExists),
        (18456, DatabaseDown),
        (4060, DatabaseDown),
        (596, DatabaseDown),
        (983, DatabaseDown),
        (978, DatabaseDown),
        (10929, DatabaseDown),
        (49920, DatabaseDown),
        (229, NotPermitted),
        (2760, SchemaMissing),
        (8152, DatabaseError),
    ],
)
def test_its_errors_are_ours(number: int, kind: type) -> None:
    error = by_number(number, "the server's words")
    assert type(error) is kind
    assert str(number) in error.detail
    assert (error.sqlstate == "40001") is (kind is Deadlock)


class Telling:
    """Answers a query for a transaction's outcome as the database ``here`` does."""

    def __init__(self, found: int, is_primary: int):
        self._row = SimpleNamespace(found=found, is_primary=is_primary)

    def value(self, query: str, params: Any = None) -> str:
        return "here"

    def one(self, query: str, params: Any = None) -> Any:
        assert "databasepropertyex(db_name(), N'Updateability')" in query
        return self._row


@pytest.mark.parametrize(
    ("found", "is_primary", "state"),
    [(1, 1, "committed"), (0, 1, "not_committed"), (0, 0, "in_progress"), (1, 0, "in_progress")],
)
def test_a_secondary_replica_is_not_believed(found: int, is_primary: int, state: str) -> None:
    """It may lack the row yet: a message that is missing there would be inserted again."""
    session: Any = Telling(found, is_primary)
    assert SHOP.crossings.commit_outcome(session, "here 6a3a07a2-1c2a-4b8e-9d7a-1f1f1f1f1f1f").state == state
    assert SHOP.crossings.commit_outcome(session, "there 6a3a07a2-1c2a-4b8e-9d7a-1f1f1f1f1f1f").state == "not_known"


@pytest.mark.parametrize("name", ["body", "remove"])
def test_a_held_row_is_found_again_by_its_number_and_its_id(name: str) -> None:
    """A number may occur twice, and another session may hold the other row."""
    asked = getattr(SHOP.crossing, name)(table=SALES)
    assert "RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)" in asked
    assert "readpast" in asked


def test_snapshot_where_the_database_has_it_off_is_said_with_what_helps() -> None:
    said = str(by_number(3952, "Snapshot isolation transaction failed accessing database 'shop'."))
    assert said == (
        "The database allows no isolation snapshot: ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON, or use"
        " another. Snapshot isolation transaction failed accessing database 'shop'. (3952)"
    )


def test_its_url() -> None:
    said = connect_options.read(
        "mssql://sh%40p:a%25b%2Fc@db.example.com:1444/shop%20one?ca=/etc/ca.pem&peek_method=range"
    )
    assert (said.host, said.port, said.catalog) == ("db.example.com", 1444, "shop one")
    assert (said.user, said.password, said.ca, said.peek_method) == ("sh@p", "a%b/c", "/etc/ca.pem", "range")
    plain = connect_options.read("mssql://host/shop")
    assert (plain.port, plain.peek_method, plain.trusts_any) == (1433, "count", False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("?encrypt=no", "encrypt is no parameter of a mssql:// URL: there are ca, peek_method"),
        ("?peek_method=guess", "must be count or range"),
        ("?trust_server_certificate=1", "must be no or yes"),
    ],
)
def test_unsupported_url_options_are_refused(more: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        connect_options.read(f"mssql://host/shop{more}")


def test_without_its_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pgqueue_admin.dialects.sqlserver.", "pytds"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pgqueue_admin.dialects.sqlserver, "driver")
    monkeypatch.setitem(sys.modules, "pytds", None)
    with pytest.raises(ValueError, match=r"pytds is not installed: pip install 'pgqueue-admin\[sqlserver\]'"):
        dialect_for("mssql://host/shop")


def test_foreign_object_cannot_be_borrowed_as_a_connection() -> None:
    with pytest.raises(TypeError, match="a connection of pytds"):
        SHOP.borrow(object())


class WithoutSnapshots:
    """A database whose table is correct; ``names``: databases without snapshot isolation."""

    def __init__(self, *names: str):
        self.names, self.asked = names, list[Any]()

    def all(self, query: str, params: Any) -> list[Any]:
        if "snapshot_isolation_state" in query:
            self.asked.append(params)
            return [SimpleNamespace(name=name) for name in self.names]
        types = SHOP.outbox_store(SALES).column_types.items()
        columns = [SimpleNamespace(name=name, type=each[0], is_unique=1) for name, each in types]
        return (
            columns if "as type" in query else [SimpleNamespace(name=name) for name in ("Dispatched", "DispatchedAt")]
        )


def test_missing_snapshot_isolation_is_a_fault_at_start() -> None:
    """The fault names the statement that allows it. Endpoints with another isolation level are not checked."""
    session: Any = WithoutSnapshots("sh]op")
    store = SHOP.outbox_store(Address("[dbo]@[shop]", "Sales_OutboxData"))
    (fault,) = store.faults(session, "snapshot")
    assert fault.stops
    assert fault.said == "The database sh]op allows no isolation snapshot, which the outbox is to have."
    assert fault.cure.startswith("alter database [sh]]op] set allow_snapshot_isolation on")
    assert session.asked == [{"catalog": "shop"}]
    assert list(store.faults(session, "read_committed")) == []
    assert len(session.asked) == 1
    allowed: Any = WithoutSnapshots()
    assert list(store.faults(allowed, "snapshot")) == []
