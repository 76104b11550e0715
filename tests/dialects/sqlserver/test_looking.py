"""Read sessions: lent, returned, replaced when lost, and never kept waiting (a real socket, peer.py)."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.crossing_store import TakenRow
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseDown, NoAnswer, TimedOut
from pgqueue_admin.dialects.sqlserver import pool as pools
from pgqueue_admin.dialects.sqlserver.crossing_store import which
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.monitor import bodies
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from tests.dialects.sqlserver.peer import DEAF, SILENT, SLOW, Peer, peer
from tests.dialects.sqlserver.test_wire import TRUSTED

BILLING: Any = SQLServer("shop").aliased("billing")
SALES = Address("billing:dbo", "Sales")

Looking = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[Peer]:
    with peer() as made:
        yield made


@contextmanager
def pool(server: Peer, **options: Any) -> Iterator[Any]:
    made = BILLING.pool(
        f"mssql://reader:x@localhost:{server.port}/shop?{TRUSTED}",
        **{"read_only": True, "answer_seconds": 20.0, "max_size": 2, **options},
    )
    try:
        yield made
    finally:
        made.close()


def test_a_session_is_lent_again(server: Peer) -> None:
    with pool(server, lock_timeout=0.2, application_name="pgqueue-admin reads") as lender:
        for _ in range(3):
            with lender.connection() as session:
                session.run("select 1")
                assert session.dialect is BILLING
    assert len(server.logins) == 1
    assert "set lock_timeout 200" in "".join(server.asked)
    assert server.gone.wait(30), "closed with the pool"


def test_lost_session_is_replaced(server: Peer) -> None:
    with pool(server) as lender:
        with lender.connection() as session:
            session.abort()
            with pytest.raises(DatabaseDown):
                session.run("select 1")
        with lender.connection() as session:
            session.run("select 1")
        assert len(server.logins) == 2


def test_session_ended_by_the_server_is_not_lent(server: Peer) -> None:
    with pool(server) as lender:
        with lender.connection() as session:
            held = session
        held.abort()
        with lender.connection() as session:
            assert session is not held
            session.run("select 1")


def test_session_left_in_a_transaction_is_closed(server: Peer) -> None:
    with pool(server) as lender:
        with lender.connection() as session:
            session.begin()
        assert session.closed


def test_pool_opens_no_more_sessions_than_its_maximum(server: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "WAIT_SECONDS", 0.05)
    with pool(server, max_size=1) as lender, lender.connection():
        another = lender.connection()
        with pytest.raises(DatabaseDown, match="every session was in use"):
            another.__enter__()
    assert len(server.logins) == 1


def test_silent_server_holds_up_one_caller_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgqueue_admin.dialects.sqlserver.dialect.SILENT_SECONDS", 0.6)
    with peer(mute=True) as mute, pool(mute) as lender:
        began = time.monotonic()
        for _ in range(5):
            with pytest.raises(DatabaseDown), lender.connection():
                pass
        assert 0.6 <= time.monotonic() - began < 3


def test_a_statement_that_takes_too_long_is_stopped_and_the_session_stays(server: Peer) -> None:
    with pool(server, answer_seconds=0.3) as lender:
        with pytest.raises(TimedOut, match=r"0\.3 s"), lender.connection() as session:
            session.run(f"select 1 -- {SILENT}")
        assert server.stopped == 1
        with lender.connection() as again:
            assert again is session
            again.run("select 2")
    assert server.asked[-4:] == [
        f"select 1 -- {SILENT}",
        "if @@trancount > 0 rollback transaction",
        "select 2",
        "while @@trancount > 0 commit transaction",
    ]


@pytest.mark.parametrize("word", [DEAF, SLOW])
def test_session_that_cannot_be_cancelled_is_given_up(server: Peer, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgqueue_admin.dialects.sqlserver.session.STOP_SECONDS", 0.2)
    with pool(server, answer_seconds=0.3) as lender:
        with pytest.raises(NoAnswer), lender.connection() as session:
            session.run(f"select 1 -- {word}")
        assert session.closed
        assert server.stopped == (1 if word == DEAF else 0)


def test_a_session_that_receives_is_given_up_as_before(server: Peer) -> None:
    dsn = f"mssql://sa:x@localhost:{server.port}/shop?{TRUSTED}"
    with SQLServer("shop").connect(dsn, connect_timeout=20, answer_seconds=0.3) as session, pytest.raises(NoAnswer):
        session.run(f"select 1 -- {SILENT}")
    assert server.stopped == 0


def test_failed_statement_undoes_its_batch(server: Peer) -> None:
    with pool(server, answer_seconds=0.3) as lender, lender.connection() as session:
        assert session.batch([("select 1", None), ("select 2", None)]) == [[], []]
        before = len(server.asked)
        with suppress(TimedOut):
            session.batch([("select 3", None), (f"select 4 -- {SILENT}", None), ("select 5", None)])
        assert server.asked[before:] == ["select 3", f"select 4 -- {SILENT}", "if @@trancount > 0 rollback transaction"]


def test_values_are_sent_as_what_they_are(server: Peer) -> None:
    with pool(server) as lender, lender.connection() as session:
        session.all(BILLING.monitor.tables(), {"schemas": ["dbo"], "family": None})
    (called,) = server.called
    for each in ("openjson(@P1)", "@family nvarchar(128) = NULL", "@P1 NVARCHAR(MAX)", '["dbo"]'):
        assert each.encode("utf-16-le") in called, each


@pytest.mark.parametrize(
    ("columns", "seq", "found_by"),
    [
        ({"id": "uuid"}, None, "where Id = cast(@P"),
        ({"id": "uuid"}, 7, "where RowVersion = @P4 and Id = cast(@P"),
        ({"due": "timestamp without time zone"}, None, "where RowVersion = @P"),
    ],
)
def test_a_body_is_found_by_what_an_index_has(
    server: Peer, columns: dict[str, str], seq: int | None, found_by: str
) -> None:
    row_id = UUID("00000000-0000-0000-0000-000000000005")
    with pool(server) as lender, lender.connection() as session:
        assert bodies.body(session, QueueTable(SALES, TableKind.INPUT, "", columns), row_id, seq=seq) is None
    (called,) = server.called
    assert found_by in re.sub(r"\s+", " ", called.decode("utf-16-le", "replace"))


def test_names_of_another_database_are_refused() -> None:
    for elsewhere in (Address("dbo", "Sales"), Address("stock:dbo", "Sales"), Address("billing:", "Sales")):
        with pytest.raises(AddressUnreadable):
            BILLING.browse.there(table=elsewhere)
    assert BILLING.parse_address("Sales@[dbo]@[shop]") == SALES
    assert BILLING.queue_store(SALES).address == Address("dbo", "Sales")
    assert SQLServer("shop").aliased("").alias == ""


def test_taken_row_is_found_again_by_indexed_columns() -> None:
    waiting = TakenRow(0, "", UUID(int=7), None, "{}", 5)
    assert which(waiting) == {"seq": 5, "id": str(UUID(int=7))}
    delayed = which(waiting._replace(place="2026-11-29 01:00:00.003"))
    assert (delayed["seq"], str(delayed["due"])) == (5, "2026-11-29 01:00:00.003000")
