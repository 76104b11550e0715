"""Rows by binary COPY, through libpq itself."""

import pytest

from pgqueue_admin.dialects import Connection, errors
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.postgresql import binary_copy
from tests.dialects.sales import QUEUE, ROW, SQL, Traced, bodies, send


def made(many: int) -> list[binary_copy.Row]:
    return [(bytes(15) + bytes([number]), None, "{}", b"%d" % number) for number in range(many)]


def test_any_number_is_one_statement_and_one_transaction(queue: Connection, traced: Traced) -> None:
    trace = traced(lambda: queue.copy_rows(SQL.load(table=QUEUE), made(99)))
    assert (trace.text.count("CopyInResponse"), trace.round_trips) == (1, 1)
    assert bodies(queue) == [b"%d" % number for number in range(99)]


def test_encoded_rows_are_sent_in_chunks() -> None:
    sizes = [10, binary_copy.CHUNK, 10, 10]
    chunks = list(binary_copy.encoded(((bytes(16), None, "{}", bytes(size)) for size in sizes), "utf-8"))
    assert [len(chunk) > binary_copy.CHUNK for chunk in chunks] == [True, False]
    assert all(len(chunk) < 2 * binary_copy.CHUNK for chunk in chunks)


def test_a_table_that_is_not_there_costs_no_session(queue: Connection) -> None:
    with pytest.raises(errors.TableMissing):
        queue.copy_rows(SQL.load(table=Address("public", "Nowhere")), made(3))
    with pytest.raises(errors.AlreadyExists):
        queue.copy_rows(SQL.load(table=QUEUE), [*made(3), *made(3)])
    send(queue)
    assert bodies(queue) == [ROW["body"]]


def test_copy_is_undone_with_its_transaction(queue: Connection) -> None:
    def undone() -> None:
        with queue.transaction():
            queue.copy_rows(SQL.load(table=QUEUE), made(3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert bodies(queue) == []
