"""A text search reads a limited number of messages, dead ones first, and reports exactly which rows it covered."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.archive import export_reader, store, text_search
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.archive.search_terms import Excluded, Lane, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DEAD = ArchiveFilter(state="dead")
FOUND = ArchiveFilter(state="", bodies=("wanted",))
ROWS = 40  # every fourth is dead; every second matches


@pytest.fixture
def filled(engine: Connection, monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(text_search, "ROWS", 12)
    monkeypatch.setattr(text_search, "FIRST", 5)
    for number in range(ROWS):
        message = DeadMessage(
            queue="q",
            result="failed" if number % 4 == 0 else "success",
            message_id=str(number),
            body=b"wanted" if number % 2 == 0 else b"other",
            died_at=NOW - timedelta(minutes=number // 3),  # three died at the same time
        )
        store.archive_failed(engine, message)
    return engine


def names(connection: Connection, asked: ArchiveFilter) -> list[int]:
    return sorted(int(row.message_id or "") for row in store.page(connection, asked, limit=100).messages)


def of_ids(connection: Connection, ids: tuple[int, ...]) -> list[int]:
    return names(connection, ArchiveFilter(state="", ids=ids))


def test_dead_ones_are_looked_through_whole_and_then_the_newest_others(filled: Connection) -> None:
    looked = text_search.look_through(filled, FOUND)
    dead, others = looked.lanes
    assert (dead.which, dead.read, dead.done) == ("dead", 10, True)
    assert (others.which, others.read, others.done) == ("others", 12, False)
    assert of_ids(filled, looked.ids) == [2, 6, 10, 14, *range(0, ROWS, 4)].__class__(
        sorted([2, 6, 10, 14, *range(0, ROWS, 4)])
    )
    assert not looked.is_whole
    assert looked.rest == (Lane("others", others.oldest),)


def test_going_on_covers_every_row_once(filled: Connection) -> None:
    looked = text_search.look_through(filled, FOUND)
    found, read = list(looked.ids), sum(lane.read for lane in looked.lanes)
    while looked.rest:
        looked = text_search.look_through(filled, FOUND, looked.rest)
        found, read = [*found, *looked.ids], read + sum(lane.read for lane in looked.lanes)
    assert read == ROWS
    assert len(found) == len(set(found)) == ROWS // 2
    assert of_ids(filled, tuple(found)) == list(range(0, ROWS, 2))


def test_page_count_and_frozen_set_are_what_was_covered(filled: Connection) -> None:
    looked = text_search.look_through(filled, FOUND)
    within = ArchiveFilter(state="", bodies=("wanted",), window=looked.window)
    assert names(filled, within) == of_ids(filled, looked.ids)
    assert store.count(filled, within, 100).number == len(looked.ids)
    freeze = postgresql().operation.freeze_matching(**store.matching(within))
    assert filled.run(freeze, {**within.params(), "operation_id": 1}) == len(looked.ids)
    frozen = filled.all("select archive_id from messages.operation_item where operation = 1")
    assert {row.archive_id for row in frozen} == set(looked.ids)
    next_window = text_search.look_through(filled, FOUND, looked.rest).window
    beside = names(filled, ArchiveFilter(state="", bodies=("wanted",), window=next_window))
    assert beside
    assert not set(beside) & set(of_ids(filled, looked.ids))
    assert names(filled, ArchiveFilter(state="", bodies=("wanted",), window=())) == []


def test_other_terms_choose_what_is_read(filled: Connection) -> None:
    of_one = ArchiveFilter(state="dead", bodies=("wanted",), also=(Excluded(Term("id", "0", "is")),))
    looked = text_search.look_through(filled, of_one)
    assert [(lane.which, lane.read, lane.done) for lane in looked.lanes] == [("all", 9, True)]
    assert looked.is_whole
    assert of_ids(filled, looked.ids) == list(range(4, ROWS, 4))


def test_search_ends_at_its_time_limit_and_reports_its_coverage(
    filled: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "SECONDS", 0.0)
    looked = text_search.look_through(filled, FOUND)
    assert [(lane.which, lane.read, lane.done) for lane in looked.lanes] == [("dead", 5, False), ("others", 0, False)]
    assert of_ids(filled, looked.ids) == [0, 4, 8, 12, 16]
    following = text_search.look_through(filled, FOUND, looked.rest)
    assert of_ids(filled, following.ids) == [20, 24, 28, 32, 36]


def test_times_beyond_the_calendar_are_neither_skipped_nor_read_twice(filled: Connection) -> None:
    filled.run("update messages.message_archive set died_at = 'infinity' where id % 2 = 0")
    filled.run("update messages.message_archive set died_at = '0044-03-15 BC' where id % 3 = 0")
    looked = text_search.look_through(filled, FOUND)
    found = list(looked.ids)
    while looked.rest:
        looked = text_search.look_through(filled, FOUND, looked.rest)
        found += looked.ids
    assert of_ids(filled, tuple(found)) == list(range(0, ROWS, 2))
    assert len(found) == ROWS // 2


def test_a_window_that_somebody_made_up_reads_no_more(filled: Connection) -> None:
    assert Lane("all").most == 2 * 50_000
    assert names(filled, ArchiveFilter(state="", bodies=("wanted",), window=(Lane("all", most=3),))) == [0, 2]


def test_window_after_a_message_reads_the_nearest_ones(filled: Connection) -> None:
    key = filled.one("select died_at::text as at, seq from messages.message_archive where message_id = '20'")
    assert key
    after = Lane("after", (key.at, key.seq), most=5)
    found = store.page(filled, ArchiveFilter(state="", bodies=("wanted",), window=(after,)), limit=100).messages
    assert [row.message_id for row in found] == ["12", "16"]


def test_search_that_could_read_nothing_times_out(
    filled: Connection, engine_database: str, connect: Callable[..., Connection]
) -> None:
    look, blocker = connect(engine_database), connect(engine_database)
    look.run("set statement_timeout = '200ms'")
    with blocker.transaction():
        blocker.run("lock table messages.message_archive in access exclusive mode")
        with pytest.raises(TimedOut):
            text_search.look_through(look, FOUND)


def test_rows_read_before_a_statement_timeout_count(
    filled: Connection, engine_database: str, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session locks the table between two pieces."""
    look, blocker = connect(engine_database), connect(engine_database)
    look.run("set statement_timeout = '300ms'")
    pieces: list[int] = []

    def lock_before_the_second(first: int, second: int) -> int:
        pieces.append(first)
        if len(pieces) == 3:  # called twice per piece: for its size and for the next one's
            blocker.run("begin; lock table messages.message_archive in access exclusive mode")
        return min(first, second)

    monkeypatch.setattr(text_search, "min", lock_before_the_second, raising=False)
    looked = text_search.look_through(look, FOUND)
    assert [lane.read for lane in looked.lanes] == [5, 0]
    assert looked.lanes[0].oldest
    blocker.run("rollback")


class Impatient:
    """A session in which reading by key times out, as where an index finds few rows in a long archive."""

    def __init__(self, connection: Connection, reads: int):
        self._connection, self._left = connection, reads

    def all(self, query: Any, params: Any) -> Any:
        by_ids = any(isinstance(value, list) for value in params.values())
        if "limit" in params and not by_ids:
            self._left -= 1
            if self._left < 0:
                raise TimedOut("canceling statement due to statement timeout")
        return self._connection.all(query, params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("reads", [0, 1, 2])
@pytest.mark.parametrize(
    "asked", [ArchiveFilter(state="dead"), ArchiveFilter(state="", also=(Term("id", "1", "starts"),))]
)
def test_a_walk_goes_on_row_by_row_where_a_read_by_key_takes_too_long(
    filled: Connection, monkeypatch: pytest.MonkeyPatch, reads: int, asked: ArchiveFilter
) -> None:
    monkeypatch.setattr(export_reader, "ROWS", 3)
    meant = [row.id for row in store.page(filled, asked, limit=100).messages]
    assert walked(Impatient(filled, reads), asked) == meant
    assert walked(filled, asked) == meant


class LateOnce:
    """A session in which sorting the matches times out, once."""

    def __init__(self, connection: Connection):
        self._connection, self._was = connection, False

    def all(self, query: Any, params: Any) -> Any:
        if params.keys() == {"ids"} and not self._was:
            self._was = True
            raise TimedOut("canceling statement due to statement timeout")
        return self._connection.all(query, params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_a_walk_loses_nothing_of_what_it_had_found(filled: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_reader, "ROWS", 3)
    assert of_ids(filled, tuple(walked(LateOnce(filled), FOUND))) == list(range(0, ROWS, 2))


def test_a_walk_of_texts_covers_all_windows_once(filled: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_reader, "ROWS", 3)
    assert of_ids(filled, tuple(walked(filled, FOUND))) == list(range(0, ROWS, 2))
    assert len(walked(filled, FOUND)) == ROWS // 2


@pytest.mark.parametrize(
    "change", ["resolution = 'retried' where state = 'dead'", "result = 'failed' where state <> 'dead'"]
)
def test_a_walk_meets_once_what_changes_its_state_meanwhile(
    filled: Connection, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(export_reader, "ROWS", 3)
    walking = export_reader.ArchiveWalk(FOUND)
    walking.read(filled)
    filled.run(f"update messages.message_archive set {change}")
    found = read_on(filled, walking)
    assert found == [row.id for row in store.page(filled, FOUND, limit=100).messages]


def walked(connection: Any, asked: ArchiveFilter) -> list[int]:
    return read_on(connection, export_reader.ArchiveWalk(asked))


def read_on(connection: Any, walking: export_reader.ArchiveWalk) -> list[int]:
    found = list[int]()
    while not walking.is_over:
        some = walking.read(connection)
        assert len(some) <= 3
        found += [row.id for row in some]
    return found
