"""Crossings between databases: the store's statements on each kind of database (dialects.crossing_store)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from pgqueue_admin.archive.error_queue_parser import read
from pgqueue_admin.dialects import Address, dialect_for
from pgqueue_admin.dialects.crossing_store import CrossingStore
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.transport.wire import headers as h
from tests import mssql
from tests.waiting import PATIENCE

MUCH = 1_000_000
POSTGRESQL: Any = postgresql().aliased("billing")
SQL_SERVER: Any = SQLServer("shop").aliased("billing")


class There(NamedTuple):
    """``open``: opens another session of the database."""

    session: Any
    open: Callable[[], Any]
    store: CrossingStore
    queue: Address


@pytest.fixture(params=["postgresql", *mssql.ONE])
def there(request: pytest.FixtureRequest) -> Iterator[There]:
    """A queue of a database that is writable as billing, by its alias; on SQL Server with the table of crossings."""
    with ExitStack() as kept:
        if request.param in mssql.ONE:
            dsn = kept.enter_context(request.getfixturevalue("mssql").database())
        else:
            dsn = request.getfixturevalue("database")
        dialect = dialect_for(dsn).aliased("billing")
        assert dialect.crossings is not None

        def opened() -> Any:
            return kept.enter_context(dialect.connect(dsn, answer_seconds=PATIENCE))

        session, queue = opened(), dialect.address(dialect.default_schema, "Orders")
        dialect.queue_store(queue).create(session)
        if creation := getattr(dialect.crossings, "creation", ""):
            assert creation in dialect.crossings.fault(session)
            session.run(creation)
        yield There(session, opened, dialect.crossings, queue)


def put(there: There, number: int, body: bytes = b"{}") -> list[UUID]:
    ids = [uuid4() for _ in range(number)]
    with there.session.transaction():
        taken = [there.store.put(there.session, there.queue, each, '{"a":"b"}', body) for each in ids]
    assert taken == [1] * number
    return ids


def test_commit_outcome_is_known_afterwards(there: There) -> None:
    other, marks = there.open(), []
    assert there.store.fault(there.session) == ""
    for is_undone in (False, True):
        with suppress(ValueError), there.session.transaction():
            marks.append(there.store.mark(there.session))
            assert there.store.commit_outcome(other, marks[-1]).state == "in_progress"
            if is_undone:
                raise ValueError("over")
    assert [there.store.commit_outcome(other, each).state for each in marks] == ["committed", "not_committed"]
    there.store.forget(there.session, marks[0])


def test_a_transaction_of_another_database_is_not_asked_about(there: There) -> None:
    with there.session.transaction():
        mark = there.store.mark(there.session)
    place, rest = mark.split(maxsplit=1)
    told = there.store.commit_outcome(there.session, f"{place[::-1]} {rest}")
    assert (told.state, "Another" in told.why) == ("not_known", True)
    assert there.store.here(there.session) == there.store.here(there.open())


def test_rows_are_held_and_taken_out_in_their_order(there: There) -> None:
    ids = put(there, 3, b"\x00\xff")
    with there.session.transaction():
        rows = there.store.take(there.session, there.queue, 10, MUCH)
        assert [row.id for row in rows] == ids
        assert {(row.headers, row.expires) for row in rows} == {('{"a":"b"}', None)}
        assert there.store.body(there.session, there.queue, rows[0]) == b"\x00\xff"
        other = there.open()
        with other.transaction():
            assert there.store.take(other, there.queue, 10, MUCH) == [], "nobody else has them now"
        assert there.store.remove(there.session, there.queue, rows[:2]) == 2
    with there.session.transaction():
        assert [row.id for row in there.store.take(there.session, there.queue, 10, MUCH)] == ids[2:]


def test_a_batch_is_bounded_by_bytes_and_has_one_row_in_any_case(there: There) -> None:
    put(there, 3, b"x" * 1000)
    for most, number in ((1, 1), (2_100, 2), (MUCH, 3)):
        with there.session.transaction():
            assert len(there.store.take(there.session, there.queue, 10, most)) == number


@pytest.mark.parametrize(
    ("dialect", "failed_queue"),
    [
        (POSTGRESQL, '"dbo"."Orders"'),
        (SQL_SERVER, "Orders@[dbo]@[shop]"),
        (SQL_SERVER, "Orders"),
    ],
)
def test_failed_queue_is_read_by_its_dialect_and_kept_canonical(dialect: Any, failed_queue: str) -> None:
    headers = h.dump({h.FAILED_Q: failed_queue, h.MESSAGE_ID: "1"})
    dead = read(headers, uuid4(), Address("billing:dbo", "error"), dialect)
    assert (dead.queue, dead.target) == ('"billing:dbo"."Orders"', Address("billing:dbo", "Orders"))


def test_address_in_another_catalog_is_no_queue_of_this_database() -> None:
    headers = h.dump({h.FAILED_Q: "Orders@[dbo]@[other]", h.MESSAGE_ID: "1"})
    dead = read(headers, uuid4(), Address("billing:dbo", "error"), SQL_SERVER)
    assert dead.target is not None
    assert dead.target.schema == "billing:[dbo]@[other]"


@pytest.mark.parametrize(
    ("dialect", "mark", "asked"),
    [
        (POSTGRESQL, "7312 00000001 4711 0/16B", "pg_xact_status(4711), in cluster 7312 on timeline 00000001"),
        (SQL_SERVER, "shop/5 1f2e", "row 1f2e of [dbo].[PgqueueCrossing], in database shop/5"),
    ],
)
def test_outcome_query_is_shown_to_the_person_who_decides(dialect: Any, mark: str, asked: str) -> None:
    assert asked in dialect.crossings.asked(mark)
