"""Logins and time limits, over a real socket with TLS inside TDS (peer.py)."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, NoAnswer, TransactionEndedByHandler
from pgqueue_admin.dialects.sqlserver.dialect import sqlserver
from pgqueue_admin.dialects.sqlserver.query import Query
from tests.dialects.sqlserver.peer import NUMBER, SILENT, SLOW, Peer, peer
from tests.tls_relay import CERTIFICATE
from tests.waiting import until

TRUSTED = f"ca={quote(str(CERTIFICATE), safe='')}"

Open = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[Peer]:
    with peer() as made:
        yield made


@pytest.fixture
def open_one() -> Iterator[Open]:
    opened: list[Any] = []

    def open_one(server: Peer, host: str = "localhost", more: str = TRUSTED, **options: Any) -> Any:
        dsn = f"mssql://sa:p%40ss@{host}:{server.port}/shop?{more}"
        opened.append(sqlserver().connect(dsn, **{"connect_timeout": 20, **options}))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_session_logs_in_encrypted_and_sets_its_options(server: Peer, open_one: Open) -> None:
    session = open_one(server, application_name="pgqueue Sales")
    said = "".join(server.asked)
    assert "pgqueue Sales".encode("utf-16-le") in server.logins[0]
    for each in ("implicit_transactions on", "lock_timeout 25000", "isolation level read committed"):
        assert each in said
    for each in ("quoted_identifier", "ansi_warnings", "arithabort", "concat_null_yields_null"):
        assert f"set {each} on;" in said, "else a filtered index refuses each write (1934)"
    assert "deadlock_priority" not in said
    assert not session.closed
    assert not session.is_closed_by_server()


def test_read_only_session_has_low_deadlock_priority(server: Peer, open_one: Open) -> None:
    open_one(server, read_only=True)
    assert "set deadlock_priority low" in "".join(server.asked)


def test_parameters_are_sent_beside_the_statement(server: Peer, open_one: Open) -> None:
    """Each with its type; NULL is written in the text, and % is not doubled."""
    session, rows = open_one(server), [("{}", b"'; drop table x", 5), ("{'}", b"y" * 9_000, None)]
    ((_, params),) = sqlserver().queue_store(Address("dbo", "Sales")).insertions(rows)
    session.run(sqlserver().queue.send_many(table=Address("dbo", "Sales"), rows=_both(sqlserver())), params)
    (called,) = server.called
    text = "from (values (0, cast(@P1 as bigint), @P2, @P3), (1, cast(NULL as bigint), @P4, @P5)) as message"
    types = "@P1 INT,@P2 NVARCHAR(MAX),@P3 VARBINARY(8000),@P4 NVARCHAR(MAX),@P5 VARBINARY(MAX)"
    for each in (text, types, "ttbr_ms % 86400000"):
        assert each.encode("utf-16-le") in called, each
    assert b"'; drop table x" in called
    assert "drop table x".encode("utf-16-le") not in called


SAME = (
    f"if @@trancount = 0 or current_transaction_id() <> {NUMBER}\n"
    "    throw 51000, N'the transaction that was begun is over', 1"
)


def _both(dialect: Any) -> Query:
    return Query(", ".join(dialect.queue.row(place=place) for place in range(2)))


def test_a_transactions_end_has_no_parameters(server: Peer, open_one: Open) -> None:
    """As a procedure call, the server would refuse a changed number of open transactions at its end."""
    session = open_one(server)
    before = len(server.asked)
    with session.transaction():
        session.run("insert into x values (%s)", [1])
        with suppress(ZeroDivisionError), session.transaction():
            raise ZeroDivisionError
    assert len(server.called) == 1
    assert server.asked[before:] == [
        "if @@trancount = 0 begin transaction;\nselect current_transaction_id() as id",
        f"{SAME};\nsave transaction [pgqueue_1]",
        f"{SAME};\nrollback transaction [pgqueue_1]",
        f"{SAME};\nwhile @@trancount > 0 commit transaction",
    ]


def test_a_savepoint_of_a_transaction_that_is_over_is_not_released(server: Peer, open_one: Open) -> None:
    """An error that a handler met in the driver has rolled it back: later writes would be committed alone."""
    session = open_one(server)

    def ended_within() -> None:
        with session.transaction():
            with session.transaction():
                server.is_over = True
            pytest.fail("it was released")

    with pytest.raises(TransactionEndedByHandler):
        ended_within()
    assert server.asked[-3:] == [
        SAME,
        f"{SAME};\nrollback transaction [pgqueue_1]",
        "if @@trancount > 0 rollback transaction",
    ]
    assert not session.in_transaction


def test_only_of_a_batch_is_it_kept_how_its_transaction_ended(server: Peer, open_one: Open) -> None:
    session, store = open_one(server), sqlserver().queue_store(Address("dbo", "Sales"))
    for most, is_kept in ((1, False), (10, True), (1, False)):
        before = len(server.asked)
        with session.transaction_with(*store.receiving(0, most)), session.transaction():
            pass
        assert any("#pgqueue_batch" in each for each in server.asked[before:]) is is_kept
    received_row: Any = None
    assert not store.is_received(session, received_row)
    assert server.asked[-2].endswith(f"from #pgqueue_batch where Id = {NUMBER}")


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable", "snapshot"])
def test_a_session_has_the_isolation_that_is_asked(server: Peer, open_one: Open, isolation: str) -> None:
    open_one(server, isolation=isolation)
    assert f"set transaction isolation level {isolation.replace('_', ' ')}" in "".join(server.asked)


@pytest.mark.parametrize(
    ("host", "more", "why"),
    [("localhost", "", "self-signed certificate"), ("127.0.0.2", TRUSTED, "not valid for '127.0.0.2'")],
)
def test_server_without_a_valid_certificate_gets_no_password(open_one: Open, host: str, more: str, why: str) -> None:
    with peer(host=socket.gethostbyname(host)) as server:
        with pytest.raises(DatabaseDown, match=why):
            open_one(server, host, more)
        assert server.logins == []


def test_trust_server_certificate_accepts_any_certificate(server: Peer, open_one: Open) -> None:
    assert not open_one(server, "127.0.0.1", "trust_server_certificate=yes").closed


@pytest.mark.parametrize("encryption", [0, 2])
def test_server_without_encryption_gets_no_password(open_one: Open, encryption: int) -> None:
    with peer(encryption) as plain:
        with pytest.raises(DatabaseDown, match="no encryption"):
            open_one(plain)
        assert plain.logins == []


def test_a_redirect_is_not_followed_and_nobody_hears_the_password(open_one: Open) -> None:
    """The driver would follow it without encryption, to any host that the server names."""
    with peer(encryption=2) as other, peer(elsewhere=other.port) as server:
        with pytest.raises(DatabaseDown, match="redirects to another, which is not followed"):
            open_one(server)
        assert other.logins == []
        assert server.gone.wait(30)


def test_silent_server_is_given_up_at_the_connect_timeout(open_one: Open) -> None:
    with peer(mute=True) as mute:

        def connecting() -> None:
            with pytest.raises(NoAnswer) as told:
                open_one(mute, connect_timeout=0.3)
            assert told.value.seconds == 0.3

        assert 0.3 <= seconds(connecting) < 5


def test_server_that_is_no_sql_server_is_named_as_such(open_one: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            client, _ = other.accept()
            with client:
                client.recv(4096)
                client.sendall(b"\x04\x01\x00\x0a\0\0\0\0hi")

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(DatabaseDown, match="no SQL Server"):
            sqlserver().connect(f"mssql://sa:x@localhost:{other.getsockname()[1]}/shop", connect_timeout=20)


def test_refused_connection_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with pytest.raises(DatabaseDown, match="refused"):
        sqlserver().connect(f"mssql://sa:x@127.0.0.1:{port}/shop")


@pytest.mark.parametrize("word", [SILENT, SLOW])
def test_without_all_of_an_answer_the_session_is_given_up(server: Peer, open_one: Open, word: str) -> None:
    """However slowly bytes arrive."""
    session = open_one(server, answer_seconds=0.5)

    def asking() -> None:
        with pytest.raises(NoAnswer) as told:
            session.run(f"select 1 -- {word}")
        assert told.value.seconds == 0.5

    assert 0.5 <= seconds(asking) < 5
    assert session.closed
    assert not session.closed_locally
    with pytest.raises(DatabaseDown):
        session.run("select 1")
    assert server.gone.wait(30), "the connection is gone, and with it what it had begun"


def test_a_lent_session_waits_longer(server: Peer, open_one: Open) -> None:
    session, came = open_one(server, answer_seconds=0.2), list[type]()
    session.lend(True)

    def wait() -> None:
        try:
            session.run(f"select 1 -- {SILENT}")
        except DatabaseError as error:
            came.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(1)
    assert waiting.is_alive()
    session.abort()
    waiting.join(30)
    assert came == [DatabaseDown]


def test_a_server_that_ended_is_noticed_without_a_round_trip(server: Peer, open_one: Open) -> None:
    session = open_one(server)
    server.close()
    until(session.is_closed_by_server)
    with pytest.raises(DatabaseDown):
        session.run("select 1")
    assert session.closed


def test_a_closed_session_is_one_that_somebody_closed(server: Peer, open_one: Open) -> None:
    session = open_one(server)
    session.raw.close()
    assert (session.closed, session.closed_locally, session.is_closed_by_server()) == (True, True, True)
