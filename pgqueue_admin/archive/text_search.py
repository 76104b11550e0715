"""Looking for texts, which no index holds: dead messages first, each newest first, so many and for so long."""

from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from pgqueue_admin.archive import search_condition, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import Key, Lane
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql

ROWS = 50_000  # of a lane
SECONDS = 2.0  # for all lanes; one statement may take longer, up to its own limit
FIRST, LARGEST = 500, 10_000  # rows of a statement: few at first, for nobody knows how large they are


class LaneRead(NamedTuple):
    """From ``newest`` down to ``oldest``, it included; ``done`` where the lane has no more."""

    which: str  # dead, others, or all that the search's other terms leave
    newest: Key | None
    oldest: Key | None
    read: int
    done: bool


@dataclass(frozen=True)
class Coverage:
    """``ids`` of the archive that match. ``lanes``: what was looked through."""

    ids: tuple[int, ...]
    lanes: tuple[LaneRead, ...]

    @property
    def is_whole(self) -> bool:
        return all(lane.done for lane in self.lanes)

    @property
    def window(self) -> tuple[Lane, ...]:
        """To ask for the same again."""
        read = [lane for lane in self.lanes if lane.read]
        return tuple(Lane(lane.which, lane.newest, None if lane.done else lane.oldest) for lane in read)

    @property
    def rest(self) -> tuple[Lane, ...]:
        """Where to go on."""
        return tuple(Lane(lane.which, lane.oldest) for lane in self.lanes if not lane.done)


def look_through(connection: Connection, asked: ArchiveFilter, start: tuple[Lane, ...] = ()) -> Coverage:
    """From the newest on, or from where ``start`` says. Raises TimedOut where not even the first rows were read."""
    store.check(connection, asked)
    ends_at = monotonic() + SECONDS
    found, lanes = list[int](), list[LaneRead]()
    for lane in start or _lanes(asked):
        read = _read(connection, asked, lane, found, ends_at, is_first=not lanes)
        lanes.append(read)
    return Coverage(tuple(found), tuple(lanes))


def estimate(connection: Connection) -> int:
    """About how many messages the archive has; 0 where it was never counted."""
    return max(0, int(connection.value(postgresql().archive.estimate()) or 0))


def _lanes(asked: ArchiveFilter) -> tuple[Lane, ...]:
    return (Lane("all"),) if asked.state else (Lane("dead"), Lane("others"))


def _read(
    connection: Connection, asked: ArchiveFilter, lane: Lane, found: list[int], ends_at: float, *, is_first: bool
) -> LaneRead:
    parts = search_condition.looking_through(asked.columns, asked.texts, lane.which)
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
