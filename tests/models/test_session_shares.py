"""Limits of the read sessions that one queue and one user may hold."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, deadline
from pgqueue_admin.dialects.errors import Busy, DatabaseDown, TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.dialect import compose
from pgqueue_admin.models import session_shares
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.session_shares import Shares

A, B = Address("public", "A"), Address("public", "B")


def test_used_up_share_leaves_the_rest_to_others() -> None:
    shares = Shares()
    with ExitStack() as taken:
        for _ in range(2):
            taken.enter_context(shares.of({A: 2, "ivo": 4}))
        with pytest.raises(Busy), shares.of({A: 2, "eva": 4}):
            pass
        taken.enter_context(shares.of({B: 2, "ivo": 4}))
        taken.enter_context(shares.of({"ivo": 4}))
        with pytest.raises(Busy), shares.of({"ivo": 4}):
            pass
        with shares.of({}):
            pass  # no user and no queue: a process that reads by itself
    with shares.of({A: 1, "ivo": 1}):
        pass  # all came back


def test_waiter_gets_a_returned_share() -> None:
    shares, asked = Shares(), []

    def take() -> None:
        asked.append("asked")
        with shares.of({A: 1}):
            asked.append("had")

    with ThreadPoolExecutor(1) as other:
        with shares.of({A: 1}):
            waits = other.submit(take)
        waits.result()
    assert asked == ["asked", "had"]


@pytest.mark.parametrize("asked", [{"of": A}, {}], ids=["one queue", "one person"])
def test_half_of_the_sessions_is_the_most_that_one_may_have(
    console_database: str, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Address]
) -> None:
    monkeypatch.setattr(session_shares, "WAIT_SECONDS", 0.1)
    every, whose = lent(), session_shares.person.set("ivo")
    try:
        assert 0 < 2 * lent(**asked) <= every
    finally:
        session_shares.person.reset(whose)


def lent(**asked: Any) -> int:
    """Number of sessions lent at the same time until none is left."""
    number = 0
    with ExitStack() as sessions, suppress(Busy, DatabaseDown):
        while number < 100:
            sessions.enter_context(queue_database().read_session(**asked))
            number += 1
    return number


def test_all_looks_of_a_page_have_one_time_limit(database: str) -> None:
    pool = postgresql().pool(database, read_only=True, statement_timeout=60)
    sleep = compose("select pg_sleep(60)", {})
    deadline.begin(0.2)
    try:
        with pool.connection() as session:
            with pytest.raises(TimedOut):
                session.one(sleep)
            with pytest.raises(TimedOut, match="All that a page may look at"):
                session.one(sleep)
            deadline.begin(0.2)
            with pytest.raises(TimedOut), session.transaction():
                session.one(sleep)
            deadline.end()
            assert session.value(compose("select 1", {})) == 1
    finally:
        deadline.end()
        pool.close()
