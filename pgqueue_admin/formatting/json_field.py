"""One field of a JSON text: found by path, set, added or removed; no other character of the text changes."""

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from pgqueue_admin.formatting import json_tokens
from pgqueue_admin.formatting.json_tokens import NotJson

MOST_NAMES = 20  # per path
MOST_LEVELS = 200  # per text
_BLANK = " \t\n\r"
_ROOT = re.compile(r"\$\.?")
_NAME = re.compile(r'"(?P<quoted>[^"]+)"|(?P<plain>[^."\[\]\s][^."\[\]]*)')
_ELEMENT = re.compile(r"\[(\d{1,9})\]")
_VALUE, _FIRST_ELEMENT, _KEY, _FIRST_KEY, _COLON, _COMMA, _END = range(7)  # what may come next in the text

Path = tuple[str, ...]


class PathFault(ValueError):
    """Why the path is invalid, with the position."""


class FieldTwice(NotJson):
    """A name occurs twice in one object: readers take one or the other."""


def path_of(text: str) -> Path:
    """``customer.id``, ``$.lines[0]."unit price"``. A number may also name an element. Raises PathFault."""
    root = _ROOT.match(text)
    at = root.end() if root else 0
    names: list[str] = []
    while at < len(text):
        if element := _ELEMENT.match(text, at):
            names.append(str(int(element[1])))
            at = element.end()
        elif (name := _NAME.match(text, at)) and (not names or text[at - 1] == "."):
            names.append(name["quoted"] or name["plain"])
            at = name.end()
        else:
            raise PathFault(f"character {at + 1}: a name is missing. Write customer.id or lines[0].price.")
        if at < len(text) and text[at] == ".":
            at += 1
            if at == len(text):
                raise PathFault("a name is missing at its end. Write customer.id or lines[0].price.")
    if not names or len(names) > MOST_NAMES:
        raise PathFault(f"it names 1 to {MOST_NAMES} levels. Write customer.id or lines[0].price.")
    return tuple(names)


@dataclass(slots=True)
class JsonField:
    """Its position in the text. ``before`` and ``after``: its neighbours, None if there is none."""

    start: int  # of its name, or of an element's value
    value: int
    end: int
    before: int | None = None  # position of the comma before it
    after: int | None = None  # start of the next one


@dataclass(slots=True)
class _Frame:
    """An open object or list. ``depth``: names of the path that lead here; None: off the path."""

    bracket: str
    depth: int | None
    number: int = 0  # elements begun
    name: str = ""
    start: int = 0  # of the current name or element
    value: int = 0
    comma: int | None = None
    last: JsonField | None = None
    names: set[str] = field(default_factory=set)  # only on the path
    opened: int = 0


@dataclass(slots=True)
class FoundField:
    """``field`` None: the text does not have it. ``parent``: the object it could be added to: where that ends, and its
    last field; None: there is none."""

    field: JsonField | None = None
    parent: tuple[int, JsonField | None] | None = None


def find(text: str, path: Path) -> FoundField:
    """Raises NotJson if any part of the text is invalid, even after the field."""
    return _Walk(text, path).run()


def with_value(text: str, at: JsonField, value: str) -> str:
    return text[: at.value] + value + text[at.end :]


def without(text: str, at: JsonField) -> str:
    """Remove the field and one adjacent comma."""
    if at.before is not None:
        return text[: at.before] + text[at.end :]
    return text[: at.start] + text[at.end if at.after is None else at.after :]


def with_field(text: str, found: FoundField, name: str, value: str) -> str:
    """Add it after the last field, with the same layout."""
    assert found.parent
    end, last = found.parent
    named = quoted(text, name)
    if last is None:
        return f"{text[:end]}{named}:{value}{text[end:]}"
    between = text[(last.before + 1 if last.before is not None else _opened(text, last.start)) : last.start]
    key_end = last.start + len(json_tokens.TOKEN.match(text, last.start)[0])  # type: ignore[index]
    colon = text[key_end : last.value]
    return f"{text[: last.end]},{between}{named}{colon}{value}{text[last.end :]}"


def _opened(text: str, start: int) -> int:
    """Start of the whitespace before the first field."""
    return len(text[:start].rstrip(_BLANK))


def quoted(text: str, value: str) -> str:
    """A JSON string, with non-ASCII escapes if the whole document is ASCII."""
    return json.dumps(value, ensure_ascii=text.isascii())


def literal_fault(value: str) -> str:
    """Why it is no JSON value; empty: it is one."""
    try:
        find(value, ())
    except NotJson:
        return 'It is no JSON value. Write a text in quotation marks, "like this", or 12, true, null.'
    return ""


def kind(value: str) -> str:
    """Kind of a JSON value: text, number, true or false, null, object, list."""
    start = value[:1]
    named = {'"': "text", "{": "object", "[": "list", "t": "true or false", "f": "true or false", "n": "null"}
    return named.get(start, "number")


def is_same(one: str, other: str) -> bool:
    """Whether two scalar JSON values are equal: ``1`` and ``1.0`` are, ``1`` and ``"1"`` are not."""
    if kind(one) != kind(other):
        return False
    return _plain(one) == _plain(other)


def _plain(value: str) -> Any:
    if json_tokens.is_text(value):
        return json_tokens.text_of(value)
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


class _Walk:
    def __init__(self, text: str, path: Path):
        self._text, self._path = text, path
        self._stack: list[_Frame] = []
        self._next = _VALUE
        self._found = FoundField()
        self._open_field: JsonField | None = None  # found, before the next field of its object

    def run(self) -> FoundField:
        at = 0
        for match in json_tokens.TOKEN.finditer(self._text):
            if self._text[at : match.start()].strip(_BLANK):
                raise NotJson
            at = match.end()
            self._take(match[0], match.start(), at)
        if self._next != _END or self._text[at:].strip(_BLANK):
            raise NotJson
        return self._found

    def _take(self, token: str, start: int, end: int) -> None:
        if token in ("{", "["):
            self._open(token, start, end)
        elif token in ("}", "]"):
            self._close(token, start, end)
        elif token == ":":
            self._expect(_COLON)
            self._next = _VALUE
        elif token == ",":
            self._comma(start)
        elif self._next in (_KEY, _FIRST_KEY):
            self._name(token, start)
        else:
            self._scalar(token, start, end)

    def _open(self, token: str, start: int, end: int) -> None:
        self._expect(_VALUE, _FIRST_ELEMENT)
        self._begin_value(start)
        depth = self._depth_within()
        if len(self._stack) >= MOST_LEVELS:
            raise NotJson
        self._stack.append(_Frame(token, depth, opened=end))
        self._next = _FIRST_KEY if token == "{" else _FIRST_ELEMENT

    def _depth_within(self) -> int | None:
        """Number of path names that lead to the value that begins."""
        if not self._stack:
            return 0
        frame = self._stack[-1]
        if frame.depth is None or frame.depth >= len(self._path):
            return None
        name = frame.name if frame.bracket == "{" else str(frame.number - 1)
        return frame.depth + 1 if name == self._path[frame.depth] else None

    def _close(self, token: str, start: int, end: int) -> None:
        self._expect(_COMMA, _FIRST_KEY if token == "}" else _FIRST_ELEMENT)
        if not self._stack or self._stack[-1].bracket != {"}": "{", "]": "["}[token]:
            raise NotJson
        frame = self._stack.pop()
        if frame.bracket == "{" and frame.depth is not None and frame.depth == len(self._path) - 1:
            self._found.parent = (frame.opened if frame.last is None else start, frame.last)
        self._end_value(end)

    def _comma(self, start: int) -> None:
        self._expect(_COMMA)
        frame = self._stack[-1]
        frame.comma = start
        self._next = _KEY if frame.bracket == "{" else _VALUE

    def _name(self, token: str, start: int) -> None:
        frame = self._stack[-1]
        if not json_tokens.is_text(token):
            raise NotJson
        frame.name, frame.start = json_tokens.text_of(token), start
        if frame.depth is not None and frame.depth < len(self._path):
            if frame.name in frame.names and frame.name == self._path[frame.depth]:
                raise FieldTwice
            frame.names.add(frame.name)
        self._next = _COLON

    def _scalar(self, token: str, start: int, end: int) -> None:
        self._expect(_VALUE, _FIRST_ELEMENT)
        if json_tokens.is_text(token):
            json_tokens.text_of(token)
        elif not json_tokens.WORD.fullmatch(token):
            raise NotJson
        self._begin_value(start)
        self._end_value(end)

    def _begin_value(self, start: int) -> None:
        if not self._stack:
            return
        frame = self._stack[-1]
        if frame.bracket == "[":
            frame.start = start
            frame.number += 1
        if frame.last is not None and frame.last.after is None:
            frame.last.after = frame.start
        frame.value = start

    def _end_value(self, end: int) -> None:
        self._next = _COMMA if self._stack else _END
        if not self._stack:
            return
        frame = self._stack[-1]
        at = JsonField(frame.start, frame.value, end, frame.comma)
        if frame.depth == len(self._path) - 1 and self._depth_within() is not None:
            self._found.field = at
        frame.last = at

    def _expect(self, *these: int) -> None:
        if self._next not in these:
            raise NotJson
