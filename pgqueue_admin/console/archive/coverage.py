"""What a text search has covered, for its line: a page never says only "no match"."""

from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.archive import text_search
from pgqueue_admin.archive.text_search import Coverage, LaneRead
from pgqueue_admin.console.archive import window
from pgqueue_admin.console.archive.search import ArchiveSearch
from pgqueue_admin.console.messages.detail.summary import STATE_WORDS
from pgqueue_admin.formatting.numbers import format_figure


class CoveredLane(NamedTuple):
    noun: str
    read: int
    done: bool
    newest: datetime | None
    oldest: datetime | None


class CoverageLine(NamedTuple):
    """``rest``: where to continue, as a URL parameter; "" if nothing is left. ``of``: of how many messages, if known.

    ``by_index``: an index searched all of them at once.
    """

    lanes: list[CoveredLane]
    is_whole: bool
    is_part: bool  # a part before it was searched earlier
    is_narrowed: bool
    of: str
    rest: str
    next: int
    by_index: bool = False

    @property
    def so_far(self) -> str:
        """Follows the number of matches."""
        return " in this part" if self.is_part else " so far" if self.rest else ""


def coverage_line(looked: Coverage, query: ArchiveSearch, estimate: int) -> CoverageLine:
    asked = query.filter
    is_narrowed = len(asked.columns.nodes) > bool(asked.state)
    of = f" of {format_figure(estimate, 'estimate')} in the archive" if estimate and not is_narrowed else ""
    rest = window.pack(looked.rest) if looked.rest else ""
    is_part = any(lane.newest for lane in looked.lanes)
    if looked.is_by_index:
        of = f"all {format_figure(estimate, 'estimate')}" if estimate and not is_narrowed else "the whole archive"
        return CoverageLine([], True, False, is_narrowed, of, rest, text_search.ROWS, by_index=True)
    lanes = [_lane(lane, query) for lane in looked.lanes]
    return CoverageLine(lanes, looked.is_whole and not is_part, is_part, is_narrowed, of, rest, text_search.ROWS)


def _lane(lane: LaneRead, query: ArchiveSearch) -> CoveredLane:
    noun = STATE_WORDS.get(query.filter.state, query.filter.state) if lane.which == "all" else lane.which
    ends = window.instant(lane.newest), window.instant(lane.oldest)
    return CoveredLane(noun, lane.read, lane.done, *ends)
