"""Nothing is missed and nothing read twice, whoever commits late and whoever else tries: the ledger alone, no Spark."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.model import DeadMessage
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline import ledger, planning
from pgqueue_admin.pipeline.driver import Driver
from pgqueue_admin.pipeline.limits import HEADERS_MOST
from pgqueue_admin.pipeline.selects import selects
from pgqueue_admin.pipeline.tables import ARCHIVE, sources
from pgqueue_admin.records.models import HistoryBatch, HistorySource, Queue, StoryPart
from pgqueue_admin.transport.table_queue import TableQueue
from tests.pipeline.figures import Figures

Connect = Callable[[str], Any]
TEXTS = ("message_id", "queue", "endpoint", "type", "exception")


@pytest.fixture
def database(console_database: str, connect: Connect) -> Any:
    return connect(console_database)


def died(connection: Any, number: int = 1) -> None:
    for _ in range(number):
        store.bury(connection, DeadMessage(queue='"public"."Billing"'))


def read(connection: Any, source: HistorySource, most: int = 100) -> list[int]:
    """Plan and end batches until none is left; the numbers that their SELECTs gave, in order."""
    found: list[int] = []
    while batch := planning.plan(connection, source, most):
        found += [row.seq for part in selects(connection, batch, 2) for row in connection.all(part)]
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
        source.refresh_from_db()
    return found


def test_a_lower_number_that_commits_late_is_read_later(database: Any, console_database: str, connect: Connect) -> None:
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)
        died(database)
        assert read(database, archive) == [2]
    assert read(database, archive) == [1]
    assert read(database, archive) == []


def test_a_range_is_read_in_parts_and_each_once(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 25)
    assert read(database, archive, most=10) == list(range(1, 26))
    died(database, 3)
    assert read(database, archive, most=10) == [26, 27, 28]


def test_what_commits_between_the_parts_of_a_range_comes_with_the_next(
    database: Any, console_database: str, connect: Connect
) -> None:
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)  # 1
        died(database, 6)
        batch = planning.plan(database, archive, 4)
        assert batch is not None
        assert (batch.seq_lo, batch.seq_hi, batch.rows) == (2, 5, 4)
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
    archive.refresh_from_db()
    assert read(database, archive, most=4) == [6, 7, 1]


def test_what_was_rolled_back_is_nothing(database: Any, console_database: str, connect: Connect) -> None:
    (archive,) = sources(database)
    database.run("begin")
    died(database)
    database.run("rollback")
    assert planning.plan(database, archive) is None


def test_an_open_batch_is_replayed_as_planned(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    first = planning.plan(database, archive)
    died(database, 3)
    again = planning.plan(database, archive)
    assert first == again
    assert again is not None
    assert again.rows == 3


def test_an_attempt_that_was_overtaken_commits_nothing(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    batch = planning.plan(database, archive)
    assert batch is not None
    lost, newer = ledger.begin(batch, "a"), ledger.begin(batch, "b")
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, lost, 3, {}, [], [])
    ledger.done(batch, newer, 3, {}, [], [])
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, newer, 3, {}, [], [])
    assert HistoryBatch.objects.get().attempt == 2


def test_an_audit_queue_waits_for_its_writers(database: Any, console_database: str, connect: Connect) -> None:
    """We may add no column there: a number is decided when those have ended who may have a lower one."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        slow.run(PUT)
        database.run(PUT)
        pid, began = slow.one("select pg_backend_pid() as pid, now() at time zone 'utc' as began")
        assert planning.plan(database, source) is None
        source.refresh_from_db()
        assert f"is open since {began:%Y-%m-%d %H:%M:%S} UTC (process {pid})" in source.note
    assert read(database, source) == [1, 2]
    assert read(database, source) == []


def test_an_audit_queue_that_is_never_left_alone_is_read(
    database: Any, console_database: str, connect: Connect
) -> None:
    """There is always somebody who writes; whoever came after the highest number was seen need not be waited for."""
    source, found = audit(database), list[int]()
    database.run(PUT)
    one, other = connect(console_database), connect(console_database)
    one.run("begin")
    one.run(PUT)
    for _ in range(3):
        found += read(database, source)
        other.run("begin")
        other.run(PUT)
        one.run("commit")
        one, other = other, one
    found += read(database, source)
    assert found == [1, 2, 3], "one behind those who write"
    assert HistorySource.objects.exclude(complete_to=None).filter(pk=source.pk).exists()
    one.run("commit")
    assert found + read(database, source) == [1, 2, 3, 4, 5]


def test_a_driver_that_dies_while_it_waits_has_not_seen_less(
    database: Any, console_database: str, connect: Connect
) -> None:
    """The next one waits for the same writers; all that the ledger knows of it is in the ledger."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        slow.run(PUT)
        database.run(PUT)
        assert planning.plan(database, source) is None
        again = HistorySource.objects.get(pk=source.pk)
        assert (again.head, len(again.writers)) == (2, 1)
        assert planning.plan(database, again) is None
    assert read(database, again) == [1, 2]


def test_a_vacuum_is_not_waited_for(database: Any, console_database: str, connect: Connect) -> None:
    """It may take hours, and writes no row."""
    cleaning, source = connect(console_database), audit(database)
    database.run(PUT)
    with cleaning.transaction():
        cleaning.run("lock table audit in share update exclusive mode")
        assert read(database, source) == [1]


def test_a_role_that_only_looks_can_tell(database: Any, console_database: str, connect: Connect) -> None:
    """Of the sequence it sees only how it is made; what lies in schemas that it may not enter is not asked for."""
    source = audit(database)
    for statement in (PUT, "create schema hidden", "create sequence hidden.numbers", "create role only_looks_history"):
        database.run(statement)
    database.run("grant select on audit to only_looks_history")
    looking = connect(console_database)
    looking.run("set role only_looks_history")
    try:
        assert read(looking, source) == [1]
    finally:
        database.run("drop owned by only_looks_history; drop role only_looks_history")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("alter sequence audit_seq_seq cache 20", "hands 20 numbers at once"),
        ("truncate audit restart identity", "its numbers began anew"),
    ],
)
def test_numbers_that_say_nothing_are_not_gone_by(change: str, why: str, database: Any) -> None:
    """Rather a warning that it stands still than rows that are missing, and nobody told."""
    source = audit(database)
    for _ in range(3):
        database.run(PUT)
    assert read(database, source) == [1, 2, 3]
    source.refresh_from_db()
    before = source.complete_to
    database.run(change)
    database.run(PUT)
    assert planning.plan(database, source) is None
    source.refresh_from_db()
    assert why in source.note
    assert source.complete_to == before


def test_another_table_of_the_same_name_is_not_gone_on_with(database: Any) -> None:
    """Its numbers may be past those that were read: the first of them would never be."""
    source = audit(database)
    database.run(PUT)
    assert read(database, source) == [1]
    database.run("drop table audit")
    TableQueue(postgresql(), Address("public", "audit")).create(database)
    for _ in range(3):
        database.run(PUT)
    source.refresh_from_db()
    assert planning.plan(database, source) is None
    source.refresh_from_db()
    assert "another table than the one that was read up to number 1" in source.note
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/history.md says
    source.refresh_from_db()
    assert read(database, source) == [1, 2, 3]


PUT = "insert into audit (id, headers, body) values (gen_random_uuid(), '{}', '')"


def audit(database: Any) -> HistorySource:
    TableQueue(postgresql(), Address("public", "audit")).create(database)
    Queue.objects.create(schema="public", table="audit", kind="audit")
    return next(each for each in sources(database) if each.table != ARCHIVE)


def test_masked_headers_never_leave_the_database(database: Any, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "MASKED_HEADERS": ["Card.Number", "Nested"]}
    plain = '{"A":"Card.Number","Card_Number":"5"}'
    said = '{"A":"1", "Card.Number" : "4111\\"1", "Nested":null,"B":"Card.Number"}'
    for headers in (said, plain):
        store.bury(database, DeadMessage(queue="q", headers=headers))
    masked = '{"A":"1", "Card.Number":"(masked)", "Nested":"(masked)","B":"Card.Number"}'
    assert headers_read(database) == [masked, plain]


@pytest.mark.parametrize("names", [[], ["Card.Number"]])
def test_headers_that_are_too_large_stay_in_the_database(names: list[str], database: Any, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "MASKED_HEADERS": names}
    for size in (HEADERS_MOST, HEADERS_MOST + 1):
        store.bury(database, DeadMessage(queue="q", headers="x" * size))
    assert headers_read(database) == ["x" * HEADERS_MOST, None]


def headers_read(database: Any) -> list[str | None]:
    (archive,) = sources(database)
    batch = planning.plan(database, archive)
    assert batch is not None
    return [row.headers for part in selects(database, batch, 1) for row in database.all(part)]


class Fed(Driver):
    """While it reads a batch, another message comes."""

    def __init__(self, feed: Callable[[], None]):
        super().__init__()
        self._feed = feed

    def _run(self, connection: Any, batch: HistoryBatch) -> bool:
        self._feed()
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
        return True


def test_a_turn_ends_though_more_comes_all_the_time(database: Any) -> None:
    """Else what it does when all is read, compaction for one, would never be done."""

    def feed() -> None:
        if HistoryBatch.objects.count() < 5:
            died(database)

    feed()
    driver = Fed(feed)
    assert [driver.turn(), driver.turn()] == [1, 1]
    assert [batch.rows for batch in HistoryBatch.objects.order_by("pk")] == [1, 1]


def test_what_was_left_open_and_what_came_since_are_one_turn(database: Any) -> None:
    died(database)
    (archive,) = sources(database)
    planning.plan(database, archive)
    died(database)
    assert Fed(lambda: None).turn() == 2


def story(text: str) -> StoryPart:
    times = {"first_at": datetime(2026, 11, 2, 1, 30, 0, 123456, tzinfo=UTC), "last_failed_at": None}
    return StoryPart(**{name: f"{text}{name}" for name in TEXTS}, failed=len(text), succeeded=0, **times)


@pytest.mark.parametrize("others", [[], ["more"] * 3000])
def test_figures_are_kept_as_they_were_counted(database: Any, others: list[str]) -> None:
    """Whatever names hold: they are streamed, and a text of them ends no row."""
    (archive,) = sources(database)
    died(database)
    batch = planning.plan(database, archive)
    assert batch is not None
    texts = ["a\tb", "a\nb", "\\N", "\\.", "", '"', "Zürich\r", *others]
    told = Figures([story(text) for text in texts])
    ledger.done(batch, ledger.begin(batch, "test"), 1, {}, [], [told])
    kept = StoryPart.objects.filter(batch=batch).order_by("pk")
    assert list(map(list, kept.values_list(*told.names))) == list(told.rows())
