"""A sequence diagram in order of sending, with a lane per endpoint; long gaps are shortened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from pgqueue_admin.formatting.conversations.copy import MessageCopy, positive
from pgqueue_admin.formatting.conversations.flow import UNKNOWN
from pgqueue_admin.formatting.durations import duration

MOST_LANES, MOST_ROWS = 10, 60
QUIET = timedelta(seconds=30)  # longer gaps are labelled
_FIRST, _LANE, _ROW, _TOP, _LETTERS = 170, 170, 32, 40, 22


@dataclass(frozen=True, slots=True)
class SequenceLane:
    name: str
    x: int

    @property
    def short(self) -> str:
        return _cut(self.name)


@dataclass(frozen=True, slots=True)
class Message:
    """One arrow, with its state at its end."""

    copy: MessageCopy
    y: int
    begin: int
    end: int
    state: str  # shown unless handled
    after: str  # time since the first was sent

    @property
    def tone(self) -> str:
        return "bad" if self.copy.is_dead or self.copy.deaths else ""

    @property
    def bar(self) -> str:
        return "dead" if self.copy.is_dead else "good" if self.copy.is_over else ""

    @property
    def is_self(self) -> bool:
        return self.begin == self.end

    @property
    def drawn(self) -> str:
        if self.is_self:
            return f"M{self.begin + 5} {self.y - 8}h24v8h-17"
        step = 5 if self.end > self.begin else -5
        return f"M{self.begin + step} {self.y}H{self.end - 2 * step}"

    @property
    def head(self) -> str:
        if self.is_self or self.end < self.begin:
            return f"M{self.end + 5} {self.y}l8 -4v8z"
        return f"M{self.end - 5} {self.y}l-8 -4v8z"

    @property
    def label(self) -> str:
        return _cut(self.copy.type or "unknown type")

    @property
    def label_x(self) -> int:
        return self.begin + 34 if self.is_self else (self.begin + self.end) // 2

    @property
    def anchor(self) -> str:
        return "start" if self.is_self else "middle"

    @property
    def label_y(self) -> int:
        return self.y - (1 if self.is_self else 5)

    @property
    def bar_x(self) -> int:
        return self.end - 5

    @property
    def bar_y(self) -> int:
        return self.y - 4

    @property
    def note_x(self) -> int:
        return self.end + 10

    @property
    def note_y(self) -> int:
        return self.y + 13


@dataclass(frozen=True, slots=True)
class QuietGap:
    """A period in which nothing was sent."""

    y: int
    said: str


@dataclass(frozen=True, slots=True)
class SequenceDrawing:
    lanes: list[SequenceLane]
    messages: list[Message]
    quiet: list[QuietGap]
    wide: int
    high: int
    left_out: int  # copies without space or time

    @property
    def said(self) -> str:
        names = ", ".join(lane.name for lane in self.lanes)
        stretches = "".join(f". For {each.said} nothing was sent" for each in self.quiet)
        return f"{len(self.messages)} messages in the order of sending, between {names}{stretches}"


def sequence(copies: Sequence[MessageCopy], now: datetime) -> SequenceDrawing:
    timed = sorted((each for each in copies if each.sent_at), key=lambda each: each.sent_at or now)
    names = list(dict.fromkeys(name for each in timed for name in _ends(each)))[:MOST_LANES]
    lanes = {name: SequenceLane(name, _FIRST + place * _LANE) for place, name in enumerate(names)}
    drawn = [each for each in timed if all(name in lanes for name in _ends(each))][:MOST_ROWS]
    messages, quiet, y = list[Message](), list[QuietGap](), _TOP
    for gap, copy in zip(_gaps(drawn), drawn, strict=True):
        if gap:
            quiet.append(QuietGap(y + 10, duration(gap.total_seconds())))
            y += _ROW
        y += _ROW
        begin, end = (lanes[name].x for name in _ends(copy))
        after = positive(drawn[0].sent_at, copy.sent_at) or timedelta()
        said = duration(after.total_seconds())
        messages.append(Message(copy, y, begin, end, "" if copy.is_over else copy.state, said))
    wide = _FIRST + _LANE * len(lanes)
    return SequenceDrawing([*lanes.values()], messages, quiet, wide, y + _ROW, len(copies) - len(drawn))


def _gaps(copies: list[MessageCopy]) -> Iterator[timedelta | None]:
    """For each copy, the time since the previous send; None if too short to show."""
    yield from [None][: len(copies)]
    for before, copy in pairwise(copies):
        gap = positive(before.sent_at, copy.sent_at)
        yield gap if gap and gap >= QUIET else None


def _ends(copy: MessageCopy) -> tuple[str, str]:
    return copy.sender or UNKNOWN, copy.place or UNKNOWN


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
