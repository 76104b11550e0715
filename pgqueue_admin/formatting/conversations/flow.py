"""A drawing of who sent what to whom: boxes in columns, an arrow per pair and type. A template renders it."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from pgqueue_admin.formatting.conversations.copy import MessageCopy
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import format_int, pluralize, times

UNKNOWN = "not known"
MOST_BOXES, MOST_ARROWS, MOST_COLUMNS = 24, 60, 6
_WIDE, _GAP, _BESIDE, _LINE, _PORT, _NARROW, _MARGIN = 178, 290, 240, 18, 24, 10, 8
_LETTERS = {"name": 22, "line": 24, "label": 38}


@dataclass(frozen=True, slots=True)
class FlowLine:
    text: str
    tone: str = ""


@dataclass(slots=True)
class FlowBox:
    name: str
    lines: list[FlowLine]
    tone: str
    column: int = 0
    x: int = 0
    y: int = 0
    free: int = 8  # space at its right, for the labels of arrows within its column
    left: "list[Arrow]" = field(default_factory=list)  # between it and earlier columns, with labels at its left
    beside: "list[Arrow]" = field(default_factory=list)  # within its column, at its right
    onward: "list[Arrow]" = field(default_factory=list)  # between it and later columns

    @property
    def right(self) -> int:
        return self.x + _WIDE

    @property
    def wide(self) -> int:
        return _WIDE

    @property
    def high(self) -> int:
        right = _PORT * len(self.beside) + _NARROW * len(self.onward)
        return max(36 + _LINE * len(self.lines), 16 + _PORT * len(self.left), 22 + right)

    @property
    def short(self) -> str:
        return _cut(self.name, "name")

    @property
    def placed(self) -> list[tuple[int, int, FlowLine]]:
        return [(self.x + 12, self.y + 41 + place * _LINE, line) for place, line in enumerate(self.lines)]

    @property
    def text_x(self) -> int:
        return self.x + 12

    @property
    def text_y(self) -> int:
        return self.y + 22

    def left_port(self, arrow: "Arrow") -> int:
        return self.y + 22 + _PORT * self.left.index(arrow)

    def right_port(self, arrow: "Arrow") -> int:
        if arrow in self.beside:
            return self.y + 20 + _PORT * self.beside.index(arrow)
        return self.y + 16 + _PORT * len(self.beside) + _NARROW * self.onward.index(arrow)


@dataclass(eq=False, slots=True)
class Arrow:
    source: FlowBox
    target: FlowBox
    type: str
    copies: list[MessageCopy]
    said: str  # how long they waited, or their state
    tone: str  # "", bad

    @property
    def is_event(self) -> bool:
        return any(copy.is_event for copy in self.copies)

    @property
    def is_beside(self) -> bool:
        """Within one column: it starts and ends at the right."""
        return self.source.column == self.target.column

    @property
    def is_back(self) -> bool:
        return self.target.column < self.source.column

    @property
    def outer(self) -> FlowBox:
        return self.source if self.is_back else self.target

    @property
    def inner(self) -> FlowBox:
        return self.target if self.is_back else self.source

    @property
    def drawn(self) -> str:
        """The SVG path's ``d``."""
        if self.is_beside:
            x, begin, end = self.target.right, self.source.right_port(self), self.target.right_port(self)
            if self.source is self.target:
                return f"M{x} {end - 6}h24v12h-17"
            return f"M{x} {begin}C{x + 56} {begin} {x + 56} {end} {x + 7} {end}"
        near, far = self.inner.right, self.outer.x
        begin, end, bend = self.inner.right_port(self), self.outer.left_port(self), near + self.inner.free
        if self.is_back:
            return f"M{far} {end}H{bend + 100}C{bend + 30} {end} {bend + 70} {begin} {bend} {begin}H{near + 7}"
        return f"M{near} {begin}H{bend}C{bend + 70} {begin} {bend + 30} {end} {bend + 100} {end}H{far - 7}"

    @property
    def head(self) -> str:
        """The arrowhead's path."""
        if self.is_beside or self.is_back:
            at = self.target.right_port(self) + (6 if self.source is self.target else 0)
            return f"M{self.target.right} {at}l8 -4v8z"
        return f"M{self.target.x} {self.target.left_port(self)}l-8 -4v8z"

    @property
    def label(self) -> str:
        return _cut(f"{self.type or 'unknown type'} {format_int(len(self.copies))} · {self.said}", "label")

    @property
    def label_x(self) -> int:
        return self.target.right + 32 if self.is_beside else self.outer.x - 14

    @property
    def label_y(self) -> int:
        return self.target.right_port(self) + 4 if self.is_beside else self.outer.left_port(self) - 5

    @property
    def anchor(self) -> str:
        return "start" if self.is_beside else "end"

    @property
    def sentence(self) -> str:
        verb = "published" if self.is_event else "sent"
        kind, number = self.type or "messages of unknown type", pluralize(len(self.copies), "copy", "copies")
        return f"{self.source.name} {verb} {kind} to {self.target.name}: {number}, {self.said}"


@dataclass(frozen=True, slots=True)
class Flow:
    boxes: list[FlowBox]
    arrows: list[Arrow]
    wide: int
    high: int
    left_out: int  # arrows without space

    @property
    def said(self) -> str:
        """The whole drawing in words."""
        return ". ".join(arrow.sentence for arrow in self.arrows)


def flow(copies: Sequence[MessageCopy], now: datetime, focus: MessageCopy | None = None) -> Flow:
    groups: dict[tuple[str, str, str], list[MessageCopy]] = {}
    for copy in copies:
        groups.setdefault((copy.sender or UNKNOWN, copy.place or UNKNOWN, copy.type), []).append(copy)
    names = list(dict.fromkeys(name for key in groups for name in key[:2]))[:MOST_BOXES]
    kept = [(key, some) for key, some in groups.items() if key[0] in names and key[1] in names][:MOST_ARROWS]
    boxes = _boxes(names, [some for _, some in kept], focus)
    arrows = [_arrow(boxes[source], boxes[target], kind, some, now) for (source, target, kind), some in kept]
    _lay_out(list(boxes.values()), arrows)
    wide = max((box.right + (_BESIDE if box.beside else 0) for box in boxes.values()), default=0)
    high = max((box.y + box.high for box in boxes.values()), default=0)
    return Flow(list(boxes.values()), arrows, wide + _MARGIN, high + _MARGIN, len(groups) - len(kept))


def _boxes(names: list[str], groups: list[list[MessageCopy]], focus: MessageCopy | None) -> dict[str, FlowBox]:
    at: dict[str, Counter[str]] = {name: Counter() for name in names}
    for copy in (copy for some in groups for copy in some):
        at[copy.place or UNKNOWN][_word(copy)] += 1
        at[copy.sender or UNKNOWN]["sent"] += 1
    here = focus.place if focus else None
    return {name: FlowBox(name, _lines(counts), _box_tone(counts, name == here)) for name, counts in at.items()}


_WORDS = {"dead": "c", "waiting": "c", "handled": "g", UNKNOWN: ""}


def _word(copy: MessageCopy) -> str:
    return "dead" if copy.is_dead else "waiting" if copy.is_waiting else "handled" if copy.is_over else UNKNOWN


def _lines(counts: Counter[str]) -> list[FlowLine]:
    found = [FlowLine(f"{format_int(counts[word])} {word}", tone) for word, tone in _WORDS.items() if counts[word]]
    return found or [FlowLine(f"sent {format_int(counts['sent'])}")]


def _box_tone(counts: Counter[str], here: bool) -> str:
    tone = "dead" if counts["dead"] else "ok" if counts["handled"] and not counts[UNKNOWN] else ""
    return " ".join(filter(None, (tone, "here" if here else "")))


def _arrow(source: FlowBox, target: FlowBox, kind: str, copies: list[MessageCopy], now: datetime) -> Arrow:
    dead, waiting = sum(copy.is_dead for copy in copies), [copy for copy in copies if copy.is_waiting]
    died = sum(copy.deaths for copy in copies)
    waits = [wait.total_seconds() for copy in copies if not copy.is_waiting and (wait := copy.wait(now)) is not None]
    if dead:
        return Arrow(source, target, kind, copies, "dead" if dead == len(copies) else f"{format_int(dead)} dead", "bad")
    if waiting:
        longest = max(filter(None, (copy.wait(now) for copy in waiting)), default=None)
        so_far = f" {duration(longest.total_seconds())}" if longest else ""
        said = "waits" if len(waiting) == len(copies) else f"{format_int(len(waiting))} waits"
        return Arrow(source, target, kind, copies, said + so_far, "bad")
    if died:
        return Arrow(source, target, kind, copies, f"died {times(died)}", "bad")
    about = "" if len(waits) < 2 else "p50 "
    return Arrow(source, target, kind, copies, f"{about}{duration(median(waits))}" if waits else "wait not known", "")


def _lay_out(boxes: list[FlowBox], arrows: list[Arrow]) -> None:
    _set_columns(boxes, arrows)
    for arrow in arrows:
        if arrow.is_beside:
            for box in {id(each): each for each in (arrow.target, arrow.source)}.values():
                box.beside.append(arrow)
        else:
            arrow.outer.left.append(arrow)
            arrow.inner.onward.append(arrow)
    heights: Counter[int] = Counter()
    lefts = _lefts(boxes)
    for box in boxes:
        box.x, box.y = lefts[box.column], _MARGIN + heights[box.column]
        box.free = lefts[box.column + 1] - lefts[box.column] - _WIDE - _GAP + 8
        heights[box.column] += box.high + 24


def _lefts(boxes: list[FlowBox]) -> list[int]:
    """Left edge of each column: arrows within a column need space for their labels."""
    lefts = [_MARGIN]
    for column in range(MOST_COLUMNS):
        beside = any(box.beside for box in boxes if box.column == column)
        lefts.append(lefts[-1] + _WIDE + _GAP + (_BESIDE if beside else 0))
    return lefts


def _set_columns(boxes: list[FlowBox], arrows: list[Arrow]) -> None:
    """Column = steps from an endpoint that received nothing; in a cycle, from the first box."""
    after: dict[str, list[FlowBox]] = {}
    for arrow in arrows:
        after.setdefault(arrow.source.name, []).append(arrow.target)
    reached = {arrow.target.name for arrow in arrows if arrow.target is not arrow.source}
    known: dict[str, int] = {}
    starts = [box for box in boxes if box.name not in reached] + boxes
    for start in starts:
        _walk(start, after, known)
    for box in boxes:
        box.column = min(known[box.name], MOST_COLUMNS - 1)


def _walk(start: FlowBox, after: dict[str, list[FlowBox]], known: dict[str, int]) -> None:
    line = deque([start] if start.name not in known else [])
    known.setdefault(start.name, 0)
    while line:
        box = line.popleft()
        for each in after.get(box.name, []):
            if each.name not in known:
                known[each.name] = known[box.name] + 1
                line.append(each)


def _cut(text: str, what: str) -> str:
    most = _LETTERS[what]
    return text if len(text) <= most else f"{text[: most - 1]}…"
