"""A pooler in transaction mode is detected, whatever its size; one in session mode and a plain relay are not."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.pooler_check import has_own_sessions
from tests.hostile.proxy import Proxy
from tests.pooler import Pooler

MakePooler = Callable[..., Pooler]


@pytest.fixture
def pooler(database: str) -> Iterator[MakePooler]:
    made: list[Pooler] = []

    def make(size: int, mode: str = "transaction") -> Pooler:
        made.append(Pooler(database, size, mode))
        return made[-1]

    yield make
    for each in made:
        each.close()


def asked(dsn: str) -> bool:
    return has_own_sessions(partial(postgresql().connect, dsn, prepared_statements=0, fail_fast=True, answer_seconds=5))


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_a_pooler_in_transaction_mode_is_noticed(pooler: MakePooler, size: int) -> None:
    assert not asked(pooler(size).dsn)


def test_test_pooler_serves_every_client(pooler: MakePooler, connect: Callable[..., object]) -> None:
    """The test's pooler works as one: the check did not react to a defect of it."""
    of = pooler(2)
    sessions = [postgresql().connect(of.dsn, prepared_statements=0) for _ in range(5)]
    with sessions[0].transaction():
        sessions[0].run("create temporary table mine (id int)")
        assert [each.value("select 1") for each in sessions[1:]] == [1, 1, 1, 1]
        assert sessions[0].run("insert into mine values (1)") == 1
    for each in sessions:
        each.close()


@pytest.mark.parametrize("size", [1, 5])
def test_a_pooler_in_session_mode_is_fine(pooler: MakePooler, size: int) -> None:
    """Even one without a free session for the second client."""
    assert asked(pooler(size, "session").dsn)


def test_a_server_is_fine(database: str) -> None:
    assert asked(database)
    wire = Proxy(database)
    assert asked(wire.dsn)
    wire.cut()


def test_pooler_check_without_a_session_reports_the_database_down(database: str) -> None:
    wire = Proxy(database)
    wire.cut()
    with pytest.raises(DatabaseDown):
        asked(wire.dsn)
