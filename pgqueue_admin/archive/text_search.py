"""Text search: by the index if it helps; otherwise scans dead messages first, newest first, within limits of rows and
time."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from pgqueue_admin.archive import indexed_texts, search_condition, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_condition import Parts
from pgqueue_admin.archive.search_terms import Key, Lane, Node
from pgqueue_admin.dialects import Connection, deadline, visible_queues
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql

ROWS = 50_000  # per lane
SECONDS = 2.0  # for all lanes; a single statement may exceed it, up to its own limit
BY_INDEX_SECONDS = 1.5  # of these, at most, for the index
BY_INDEX = 10_000  # candidates from the index: if there are more, the newest messages are scanned
FIRST, LARGEST = 500, 10_000  # rows per statement: few at first, because their size is unknown


class LaneRead(NamedTuple):
    """From ``newest`` down to ``oldest`` inclusive; ``done``: the lane has no more."""

    which: str  # dead, others, all (that the other terms find), or an index lane
    newest: Key | None
    oldest: Key | None
    read: int
    done: bool


@dataclass(frozen=True)
class Coverage:
    """``ids``: matching archive ids. ``lanes``: what was searched."""

    ids: tuple[int, ...]
    lanes: tuple[LaneRead, ...]

    @property
    def is_whole(self) -> bool:
        return all(lane.done for lane in self.lanes)

    @property
    def is_by_index(self) -> bool:
        return is_by_index(self.lanes)

    @property
    def window(self) -> tuple[Lane, ...]:
        """Lanes to repeat the same search."""
        read = [lane for lane in self.lanes if lane.read]
        return tuple(Lane(lane.which, lane.newest, None if lane.done else lane.oldest) for lane in read)

    @property
    def rest(self) -> tuple[Lane, ...]:
        """Lanes where the search continues."""
        return tuple(Lane(lane.which, lane.oldest) for lane in self.lanes if not lane.done)


def look_through(connection: Connection, asked: ArchiveFilter, start: tuple[Lane, ...] = ()) -> Coverage:
    """Search from the newest message on, or from ``start``. Raises TimedOut if not even the first rows were read."""
    store.check(connection, asked)
    ends_at = monotonic() + SECONDS
    found = None if start else by_index(connection, asked)
    return found or look_for(connection, asked.columns, asked.texts, start or _lanes(asked), ends_at)


def is_by_index(lanes: Iterable[Lane | LaneRead]) -> bool:
    return any(lane.which in indexed_texts.LANES for lane in lanes)


def still_covers(connection: Connection, lanes: tuple[Lane, ...]) -> bool:
    """Whether these lanes can be searched again: index lanes need the same index."""
    return not is_by_index(lanes) or {lane.which for lane in lanes} == {_index_lane(connection)}


def look_for(
    connection: Connection, columns: Node, texts: Node, start: tuple[Lane, ...], ends_at: float | None = None
) -> Coverage:
    """Evaluate ``texts`` on rows that ``columns`` finds, within limits of rows and time. Raises TimedOut likewise."""
    ends_at = monotonic() + SECONDS if ends_at is None else ends_at
    found, read = list[int](), list[LaneRead]()
    for lane in start:
        parts = search_condition.looking_through(columns, texts, lane.which)
        read.append(_read(connection, parts, lane, found, ends_at, is_first=not read))
    return Coverage(tuple(found), tuple(read))


def estimate(connection: Connection) -> int:
    """Estimated number of archived messages; 0 if never analysed, or if the user sees only some queues."""
    if visible_queues.current() is not None:
        return 0
    return max(0, int(connection.value(postgresql().archive.estimate()) or 0))


def by_index(connection: Connection, asked: ArchiveFilter) -> Coverage | None:
    """Search the whole archive. None if no index helps: none exists, it cannot tell, or has too many candidates, or is
    too slow.

    None also for users who see only some queues: the query reads all texts, and its duration would reveal what others
    hold.
    """
    if asked.within is not None or visible_queues.current() is not None:
        return None
    lane = _index_lane(connection)
    parts = lane and search_condition.looking_by_index(asked.columns, asked.texts, lane, BY_INDEX)
    if not lane or not parts:
        return None
    statement = postgresql().text_index.look(chosen=parts.chosen, columns=parts.columns, texts=parts.texts)
    try:
        with deadline.within(BY_INDEX_SECONDS):
            looked = connection.one(statement, {**parts.params, "most": BY_INDEX})
    except TimedOut:
        return None
    if looked is None or looked.read > BY_INDEX:
        return None
    return Coverage(tuple(looked.found), (LaneRead(lane, None, None, looked.read, True),))


def _index_lane(connection: Connection) -> str | None:
    provider = connection.value(postgresql().text_index.usable())
    return indexed_texts.lane_for(provider) if provider else None


def _lanes(asked: ArchiveFilter) -> tuple[Lane, ...]:
    return (Lane("all"),) if asked.state else (Lane("dead"), Lane("others"))


def _read(
    connection: Connection, parts: Parts, lane: Lane, found: list[int], ends_at: float, *, is_first: bool
) -> LaneRead:
    statement = postgresql().archive.look_through(columns=parts.columns, texts=parts.texts)
    at, number, size = lane.newest, 0, FIRST
    while number < ROWS and (monotonic() < ends_at or (is_first and not number)):
        most = min(size, ROWS - number)
        died_at, seq = at or (None, None)
        try:
            piece = connection.one(statement, {**parts.params, "newest": died_at, "newest_seq": seq, "rows": most})
        except TimedOut:
            if is_first and not number:
                raise
            break
        if piece is None or not piece.read:
            return LaneRead(lane.which, lane.newest, at, number, True)
        found += piece.found
        at, number, size = (piece.died_at, piece.seq), number + piece.read, min(2 * size, LARGEST)
        if piece.read < most:
            return LaneRead(lane.which, lane.newest, at, number, True)
    return LaneRead(lane.which, lane.newest, at, number, False)
