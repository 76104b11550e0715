"""C3: pages by key, single messages, and bodies in parts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Literal
from uuid import UUID, uuid4

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import bodies, browse, depth, seq_occupancy
from pgqueue_admin.monitor.browse import MessagePage
from tests.monitor.tables import fill, found, made, make, take

Connect = Callable[..., Connection]
Lend = Callable[[], AbstractContextManager[Connection]]
TO_BIGINT = postgresql().table_repair.retype_seq(table=Address("public", "Q"))


def seqs(page: MessagePage) -> list[int]:
    return [message.seq for message in page.messages]


def test_pages_head_first(connection: Connection) -> None:
    table = made(connection, 7)
    first = browse.page(connection, table, limit=3)
    assert (seqs(first), first.previous, first.next) == ([1, 2, 3], None, {"after": 3})
    second = browse.page(connection, table, limit=3, **first.next)  # type: ignore[arg-type]
    assert (seqs(second), second.previous, second.next) == ([4, 5, 6], {"before": 4}, {"after": 6})
    last = browse.page(connection, table, limit=3, **second.next)  # type: ignore[arg-type]
    assert (seqs(last), last.next) == ([7], None)
    back = browse.page(connection, table, limit=3, **last.previous)  # type: ignore[arg-type]
    assert (seqs(back), back.previous, back.next) == ([4, 5, 6], {"before": 4}, {"after": 6})
    assert browse.page(connection, table, limit=3, before=4).previous is None


def test_pages_newest_first(connection: Connection) -> None:
    table = made(connection, 5)
    first = browse.page(connection, table, order="newest", limit=2)
    assert (seqs(first), first.previous, first.next) == ([5, 4], None, {"before": 4})
    second = browse.page(connection, table, order="newest", limit=2, before=4)
    assert (seqs(second), second.previous, second.next) == ([3, 2], {"after": 3}, {"before": 2})
    newer = browse.page(connection, table, order="newest", limit=2, after=3)
    assert (seqs(newer), newer.previous, newer.next) == ([5, 4], None, {"before": 4})


@pytest.mark.parametrize("order", ["head", "newest"])
def test_rows_of_one_seq_are_all_paged(connection: Connection, order: Literal["head", "newest"]) -> None:
    """Rows may share a seq if its index is not unique."""
    connection.run('create table "Q" (id uuid primary key, expires timestamp, headers text, body bytea, seq int)')
    connection.run('create index on "Q" (seq)')
    address = Address("public", "Q")
    fill(connection, address, 12, seq="i / 6")
    table = found(connection, address)
    page = browse.page(connection, table, order=order, limit=5)
    pages = [page]
    while page.next:
        page = browse.page(connection, table, order=order, limit=5, **page.next)  # type: ignore[arg-type]
        pages.append(page)
    ids = [message.id for each in pages for message in each.messages]
    assert len(ids) == len(set(ids)) == 12
    assert page.previous
    back = browse.page(connection, table, order=order, limit=5, **page.previous)  # type: ignore[arg-type]
    assert [message.id for message in back.messages] == ids[5:10]
    head, tail = browse.head_and_tail(connection, table)
    assert len({message.id for message in head + tail}) == 6
    assert seqs(browse.page(connection, table, after=0)) == [1] * 6 + [2]
    assert seqs(browse.page(connection, table, order="newest", before=1)) == [0] * 5


def test_the_last_number_of_all_is_shown(connection: Connection) -> None:
    make(connection)
    connection.run(TO_BIGINT)
    fill(connection, Address("public", "Q"), 5, seq="9223372036854775802 + i")
    table = found(connection, Address("public", "Q"))
    assert seqs(browse.page(connection, table, order="newest", limit=2)) == [2**63 - 1, 2**63 - 2]
    head, tail = browse.head_and_tail(connection, table)
    assert seqs(MessagePage(head + tail)) == [2**63 - 5 + place for place in range(5)]
    assert seq_occupancy.steps(connection, table, 2**63 - 5, 2**63 - 1, timeout=60) == [True] * 5
    assert depth.measure(connection, table).depth == 5


def test_rows_that_leave_meanwhile_shift_nothing(connection: Connection) -> None:
    table = made(connection, 6)
    first = browse.page(connection, table, limit=3)
    take(connection, table, 2)
    assert seqs(browse.page(connection, table, limit=3, **first.next)) == [4, 5, 6]  # type: ignore[arg-type]


def test_only_expired(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(connection)
    fill(connection, table.address, 20, expires="case when i % 5 = 0 then timestamp '2000-01-01' end")
    first = browse.page(connection, table, only_expired=True, limit=3)
    assert (seqs(first), first.next, first.looked_at) == ([5, 10, 15], {"after": 15}, 20)
    assert seqs(browse.page(connection, table, only_expired=True, limit=3, after=15)) == [20]
    monkeypatch.setattr(browse, "REACH", 4)
    bounded = browse.page(connection, table, only_expired=True)
    assert (bounded.messages, bounded.next, bounded.looked_at) == ([], {"after": 4}, 4)


def test_a_message_in_flight_says_so(connection: Connection, database: str, connect: Connect) -> None:
    table, receiver = made(connection, 2), connect(database)
    with receiver.transaction():
        take(receiver, table, 1)
        states = [message.state for message in browse.page(connection, table).messages]
    assert states == ["in flight", "ready"]


@pytest.fixture
def lent(database: str) -> Iterator[Lend]:
    """The only session of a pool, as pages use it: the driver prepares frequent statements."""
    pool = postgresql().pool(database, max_size=1)
    yield pool.connection
    pool.close()


def test_a_page_does_not_notice_that_a_column_changed_its_type(connection: Connection, lent: Lend) -> None:
    table = made(connection, 2)
    for number in range(20):
        if number == 10:
            connection.run(TO_BIGINT)
        with lent() as session:
            assert seqs(browse.page(session, table)) == [1, 2]


def test_head_and_tail_notice_it_once(connection: Connection, lent: Lend) -> None:
    """Both statements share a transaction, so the failed one ends it."""
    table = made(connection, 2)
    for number in range(20):
        if number == 10:
            connection.run(TO_BIGINT)
        with suppress(DatabaseError) if number == 10 else nullcontext(), lent() as session:
            assert seqs(MessagePage(browse.head_and_tail(session, table)[0])) == [1, 2]


def test_head_and_tail_share_no_row(connection: Connection) -> None:
    table = made(connection, 5)
    head, tail = browse.head_and_tail(connection, table)
    assert ([m.seq for m in head], [m.seq for m in tail]) == ([1, 2, 3, 4], [5])


def test_a_message_that_left_is_none(connection: Connection) -> None:
    table = made(connection)
    assert browse.message(connection, table, uuid4()) is None
    assert bodies.body(connection, table, uuid4()) is None
    assert bodies.bodystring(connection, table, uuid4()) is None


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [("{broken", "not JSON"), ("[1]", "an array"), ("null", "null"), ('{"a":1}', "a number"), ("", "")],
)
def test_headers_that_cannot_be_read(connection: Connection, headers: str, complaint: str) -> None:
    table = made(connection)
    fill(connection, table.address, 1, headers=f"'{headers}'")
    (message,) = browse.page(connection, table).messages
    assert message.headers == {}
    assert complaint in message.unreadable
    assert (message.message_id, message.type, message.sent_at) == (str(message.id), "", None)


def test_huge_headers_are_cut_and_say_so(connection: Connection) -> None:
    table = made(connection)
    fill(connection, table.address, 1, headers="""'{"a":"' || repeat('ü', 100000) || '"}'""")
    (message,) = browse.page(connection, table).messages
    assert "too large to read here (200008 bytes)" in message.unreadable
    assert len(message.headers_text or "") == 65_536


@pytest.mark.parametrize("expires", ["infinity", "-infinity", "0044-03-15 12:00:00 BC", "20000-01-01 00:00:00"])
def test_times_that_no_calendar_holds(connection: Connection, expires: str) -> None:
    table = made(connection)
    fill(connection, table.address, 1, expires=f"timestamp '{expires}'")
    (message,) = browse.page(connection, table).messages
    assert (message.expires_text, message.expires_at) == (expires, None)
    assert message.is_expired == (expires in {"-infinity", "0044-03-15 12:00:00 BC"})


def row_id(connection: Connection) -> UUID:
    return connection.value('select id from "Q"')


def test_a_null_body_is_told_from_an_empty_one(connection: Connection) -> None:
    table = made(connection)
    fill(connection, table.address, 1, body="null")
    (message,) = browse.page(connection, table).messages
    assert message.body_size is None
    assert bodies.body(connection, table, message.id) == bodies.MessageBody(None, 0, None)
    assert bodies.bodystring(connection, table, message.id) is None


def test_a_body_of_50_mb_comes_in_parts(connection: Connection) -> None:
    table = made(connection)
    connection.run('alter table "Q" alter column body set storage external')  # uncompressed on disk too
    fill(connection, table.address, 1, body="convert_to(repeat('0123456789', 5000000), 'UTF8')")
    part = bodies.body(connection, table, row_id(connection), offset=49_999_995)
    assert part == bodies.MessageBody(b"56789", 49_999_995, 50_000_000)
    first = bodies.body(connection, table, row_id(connection))
    assert first
    assert first.part
    assert len(first.part) == 65_536


def test_bodystring_says_where_it_comes_from(connection: Connection) -> None:
    """T6: readable text in both cases; the column holds octal-escaped bytes, not UTF-8."""
    body = r"""convert_to('{"name":"Łódź \ 5"}', 'UTF8') || '\xff'::bytea"""
    address = make(connection)
    fill(connection, address, 1, body=body)
    decoded = bodies.bodystring(connection, found(connection, address), row_id(connection))
    assert decoded == bodies.BodyString('{"name":"Łódź \\ 5"}\\xff', False, used=23)
    connection.run("""alter table "Q" add column bodystring text generated always as (encode(body, 'escape')) stored""")
    stored = bodies.bodystring(connection, found(connection, address), row_id(connection))
    assert stored
    assert (stored.text, stored.from_column) == (decoded.text, True)
    assert stored.stored
    assert stored.stored.startswith(r'{"name":"\305\201')


@pytest.mark.parametrize("column", [False, True])
def test_a_bodystring_says_how_far_it_goes_and_ends_with_a_whole_character(
    connection: Connection, column: bool
) -> None:
    address = make(connection)
    fill(connection, address, 1, body="convert_to('{' || repeat('ü', 100000), 'UTF8')")
    if column:
        connection.run(
            """alter table "Q" add column bodystring text generated always as (encode(body, 'escape')) stored"""
        )
    table, row = found(connection, address), row_id(connection)
    begin = bodies.bodystring(connection, table, row)
    assert begin
    assert begin.text == "{" + "ü" * (begin.used // 2)
    assert begin.used == (16_383 if column else 65_535)
    on = bodies.bodystring(connection, table, row, offset=begin.used)
    assert on == bodies.BodyString("ü" * 32_768, False, used=65_536)
    end = bodies.bodystring(connection, table, row, offset=199_998)
    assert end == bodies.BodyString("\\xbcü", False, used=3)


def test_a_bodystring_cut_within_an_escape(connection: Connection) -> None:
    assert bodies.unescaped(r"a\303\25") == b"a\xc3"
    assert bodies.unescaped("a\\\\") == b"a\\"
    assert bodies.unescaped("a\\\\\\") == b"a\\"
    assert bodies.unescaped(r"\\303") == rb"\303"
