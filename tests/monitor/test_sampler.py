"""C2: all queues in one pass. A queue that cannot be read has its own error and blocks no other."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql.session import Session
from pgqueue_admin.monitor.sampler import FIND_EVERY, QueueSample, Sampler
from tests.monitor.tables import cut_sessions, fill, looking_as, make, take

Connect = Callable[..., Connection]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timeout() -> float:
    """A statement's timeout, in seconds."""
    return 60


@pytest.fixture
def sampler(database: str, connect: Connect, clock: Clock, timeout: float) -> Iterator[Sampler]:
    sampler = Sampler(
        lambda: connect(database, read_only=True, statement_timeout=timeout), ["public"], monotonic=clock, cap=1000
    )
    yield sampler
    sampler.close()


def looked(sampler: Sampler) -> dict[str, QueueSample]:
    return {sample.table.address.table: sample for sample in sampler.sample()}


def depths(samples: dict[str, QueueSample]) -> dict[str, int | None]:
    return {name: sample.depth.depth if sample.depth else None for name, sample in samples.items()}


def test_new_rows_are_seen_at_the_next_look(connection: Connection, sampler: Sampler) -> None:
    a, b = make(connection, "A"), make(connection, "B")
    assert depths(looked(sampler)) == {"A": 0, "B": 0}
    fill(connection, a, 7)
    fill(connection, b, 1500)
    samples = looked(sampler)
    assert depths(samples) == {"A": 7, "B": 1500}
    assert samples["A"].oldest_at == samples["A"].at  # it arrived since the previous sample
    assert samples["A"].oldest_how == "exact"
    rate = samples["A"].in_per_second
    assert rate is not None
    assert rate > 0


def test_a_table_that_vanishes_between_finding_and_reading(
    connection: Connection, sampler: Sampler, clock: Clock
) -> None:
    make(connection, "A")
    fill(connection, make(connection, "B"), 2)
    looked(sampler)
    connection.run('drop table "A"')
    samples = looked(sampler)
    assert depths(samples) == {"A": None, "B": 2}
    assert samples["A"].error.startswith("The table is gone.")
    assert depths(looked(sampler)) == {"B": 2}  # discovery runs again at once, not in five seconds


def test_a_new_table_is_found_within_seconds(connection: Connection, sampler: Sampler, clock: Clock) -> None:
    assert looked(sampler) == {}
    make(connection)
    assert looked(sampler) == {}
    clock.now += FIND_EVERY
    assert depths(looked(sampler)) == {"Q": 0}


@pytest.mark.parametrize("timeout", [2.0])
def test_a_locked_table_holds_up_nobody(
    connection: Connection, database: str, connect: Connect, sampler: Sampler
) -> None:
    """VACUUM FULL, ALTER TABLE and TRUNCATE lock a table exclusively, which blocks reads too."""
    make(connection, "A")
    fill(connection, make(connection, "B"), 2)
    looked(sampler)
    other = connect(database)
    with other.transaction():
        other.run('lock table "A" in access exclusive mode')
        samples = looked(sampler)
        assert depths(samples) == {"A": None, "B": 2}
        assert "holds a lock that this waited for" in samples["A"].error
    assert depths(looked(sampler)) == {"A": 0, "B": 2}


@pytest.mark.parametrize("timeout", [2.0])
def test_arrivals_during_a_table_lock_have_only_a_minimum_age(
    connection: Connection, database: str, connect: Connect, sampler: Sampler
) -> None:
    """The sampler saw nothing for an hour: when in that hour the messages arrived is unknown."""
    address, other = make(connection), connect(database)
    began = sampler.sample()[0].at
    with other.transaction():
        fill(other, address, 2)
        other.run('lock table "Q" in access exclusive mode')
        (blind,) = sampler.sample(began + timedelta(seconds=1))
        assert blind.depth is None
    (sample,) = sampler.sample(began + timedelta(hours=1))
    assert (sample.oldest_how, sample.in_per_second) == ("least", None)


def test_a_table_that_may_not_be_read(connection: Connection, database: str, connect: Connect) -> None:
    fill(connection, make(connection, "A"), 2)
    make(connection, "B")
    connection.run("create role only_looks_sampler")
    connection.run('grant select on "A" to only_looks_sampler')

    sampler = Sampler(lambda: looking_as("only_looks_sampler", connect, database), ["public"])
    try:
        samples = looked(sampler)
        assert depths(samples) == {"A": 2, "B": None}
        assert "may not" in samples["B"].error
    finally:
        sampler.close()
        connection.run("drop owned by only_looks_sampler")
        connection.run("drop role only_looks_sampler")


def test_a_lost_session_is_opened_again(connection: Connection, sampler: Sampler) -> None:
    make(connection)
    looked(sampler)
    cut_sessions(connection)
    assert depths(looked(sampler)) == {"Q": 0}


def test_delayed_messages_stand_at_their_queue(connection: Connection, sampler: Sampler) -> None:
    make(connection, "Sales")
    connection.run(
        'create table "Sales.Delayed" (id uuid primary key default gen_random_uuid(), headers text not null,'
        " body bytea, due timestamptz not null)"
    )
    connection.run("""insert into "Sales.Delayed" (headers, due) select '{}', now() + i * interval '1 hour'
                      from generate_series(0, 4) i""")
    delayed = looked(sampler)["Sales"].delayed
    assert delayed
    assert (delayed.delayed, delayed.overdue) == (5, 1)


def test_when_a_message_left(connection: Connection, sampler: Sampler) -> None:
    fill(connection, make(connection), 3)
    assert looked(sampler)["Q"].last_departure_at is None
    with connection.transaction():
        take(connection, sampler.tables[0], 1)
    sample = looked(sampler)["Q"]
    assert sample.last_departure_at == sample.at
    assert looked(sampler)["Q"].last_departure_at == sample.last_departure_at


def test_a_sender_at_work_is_no_receiver(
    connection: Connection, database: str, connect: Connect, sampler: Sampler
) -> None:
    """Its rows are invisible before the commit and gone after a rollback; its sequence numbers are taken at once."""
    address = make(connection)
    fill(connection, address, 3)
    looked(sampler)
    other = connect(database)
    other.run("begin")
    fill(other, address, 5)
    assert looked(sampler)["Q"].last_departure_at is None
    other.run("rollback")
    assert looked(sampler)["Q"].last_departure_at is None


def test_a_queue_emptied_with_a_restart(connection: Connection, sampler: Sampler) -> None:
    address = make(connection)
    fill(connection, address, 50)
    looked(sampler)
    connection.run('truncate "Q" restart identity')
    fill(connection, address, 2)
    samples = looked(sampler)
    assert depths(samples) == {"Q": 2}
    assert samples["Q"].in_per_second is None


def test_a_table_made_again_under_its_name(connection: Connection, sampler: Sampler, clock: Clock) -> None:
    """Recreated between two discoveries: its seq 3 is not the seq 3 of the old table."""
    address = make(connection)
    looked(sampler)
    fill(connection, address, 5)
    assert looked(sampler)["Q"].oldest_how == "exact"
    connection.run('drop table "Q"')
    fill(connection, make(connection), 9)
    connection.run('delete from "Q" where seq < 3')
    clock.now += FIND_EVERY
    sample = looked(sampler)["Q"]
    assert (sample.oldest_at, sample.oldest_how) == (sample.at, "least")  # these messages have no TimeSent
    assert (sample.in_per_second, sample.last_departure_at) == (None, None)


def test_names_of_every_kind(connection: Connection, sampler: Sampler) -> None:
    names = ['with "quotes"', "with.dots", "MiXed", "ünïcode 🎈", "<script>alert(1)</script>", "percent %s {brace}"]
    for name in names:
        fill(connection, make(connection, name), 1)
    assert depths(looked(sampler)) == dict.fromkeys(names, 1)
    assert {table.address for table in sampler.tables} == {Address("public", name) for name in names}


SENT = """'{"NServiceBus.TimeSent":"2026-11-20 02:47:00:000000 Z"}'"""
Trouble = Callable[[], AbstractContextManager[object]]


def age_of(sampler: Sampler) -> tuple[str, str]:
    sample = looked(sampler)["Q"]
    return f"{sample.oldest_at:%H:%M}" if sample.oldest_at else "", sample.oldest_how


def troubled(monkeypatch: pytest.MonkeyPatch, trouble: Trouble) -> list[int]:
    """Run ``trouble`` whenever the headers of a head are read; return the seqs that were read."""
    asked, answer = [], Session.value

    def value(session: Session, query: Any, params: Any = None) -> Any:
        if "seq" not in (params or {}):
            return answer(session, query, params)
        asked.append(params["seq"])
        with trouble():
            return answer(session, query, params)

    monkeypatch.setattr(Session, "value", value)
    return asked


def test_a_session_lost_at_the_first_head_costs_no_age(
    connection: Connection, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed read must not count as "no TimeSent": the head would then be as old as the sampler for good."""
    fill(connection, make(connection), headers=SENT)
    cuts = [lambda: cut_sessions(connection)]

    def cut() -> AbstractContextManager[object]:
        return nullcontext(cuts.pop()() if cuts else None)

    asked = troubled(monkeypatch, cut)
    with pytest.raises(DatabaseDown):
        sampler.sample()
    assert age_of(sampler) == ("02:47", "estimate")
    assert asked == [1, 1]


def test_headers_that_are_locked_are_read_later(
    connection: Connection, sampler: Sampler, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(connection, make(connection), headers=SENT)
    locks = [1, 2]

    @contextmanager
    def locked() -> Iterator[None]:
        with connection.transaction() if locks else nullcontext():
            if locks:
                locks.pop()
                connection.run('lock table "Q" in access exclusive mode')
            yield

    asked = troubled(monkeypatch, locked)
    assert age_of(sampler) == ("", "estimate")
    assert age_of(sampler) == ("", "estimate")
    assert asked == [1], "not at every look"
    clock.now += FIND_EVERY
    assert age_of(sampler) == ("", "estimate")
    clock.now += FIND_EVERY
    assert age_of(sampler) == ("02:47", "estimate")
    looked(sampler)
    assert asked == [1, 1, 1]


def test_headers_that_say_nothing_are_read_once(
    connection: Connection, sampler: Sampler, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(connection, make(connection), headers="'{broken'")
    asked = troubled(monkeypatch, nullcontext)
    for _ in range(3):
        assert age_of(sampler)[1] == "least"
        clock.now += FIND_EVERY
    assert asked == [1]
