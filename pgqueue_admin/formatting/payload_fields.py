"""The scalar values of a JSON object by path, read token by token: works on a truncated start, too."""

import re
from codecs import getincrementaldecoder
from dataclasses import dataclass, field
from typing import NamedTuple

from pgqueue_admin.formatting import json_tokens

DEEPEST = 3  # keys per path
LONGEST_NAME = 60
_PLAIN_KEY = re.compile(r"[\w-]+")
VALUE, ELEMENT, KEY, NEXT_KEY, COLON, COMMA, END = range(7)  # what may come next; 2nd and 3rd: or the end


class BodyStart(NamedTuple):
    """The part of a body that a list reads. ``part``: None if NULL, or (``is_cut``) too large to read at all."""

    part: bytes | None
    is_cut: bool


def of_body(start: BodyStart) -> dict[str, str] | None:
    """As ``read``; None also if it is not UTF-8."""
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(start.part or b"", final=not start.is_cut)
    except UnicodeDecodeError:
        return None
    return read(text, is_cut=start.is_cut)


def read(text: str, *, is_cut: bool = False) -> dict[str, str] | None:
    """Values by path, in search syntax; numbers as written. None: no JSON object. Values in lists are left out.

    ``is_cut``: the text continues beyond its end, so its last token may be incomplete.
    """
    walk, text = _Walk(), text.rstrip("\\") if is_cut else text  # half an escape would end its string
    for token in json_tokens.TOKEN.finditer(text):
        if is_cut and token.end() == len(text):
            return walk.found
        if not walk.takes(token[0]):
            return None
    return walk.found if is_cut or walk.next == END else None


def key(name: str) -> str:
    """A path's key in search syntax."""
    return name if _PLAIN_KEY.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class _Walk:
    """``keys``: the current key of each open object; None for a list."""

    found: dict[str, str] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)
    next: int = VALUE

    def takes(self, token: str) -> bool:
        """False: this is no JSON object."""
        if token in ("{", "["):
            return self._opens(token)
        if token in ("}", "]"):
            return self._closes(token)
        if token == ":":
            return self._goes_on(COLON, VALUE)
        if token == ",":
            return self._goes_on(COMMA, VALUE if self.keys and self.keys[-1] is None else NEXT_KEY)
        if self.next in (KEY, NEXT_KEY):
            return self._names(token)
        return self._says(token)

    def _opens(self, token: str) -> bool:
        if self.next not in (VALUE, ELEMENT) or (not self.keys and token == "["):
            return False
        self.keys.append("" if token == "{" else None)
        self.next = KEY if token == "{" else ELEMENT
        return True

    def _closes(self, token: str) -> bool:
        is_object = token == "}"
        if self.next not in (COMMA, KEY if is_object else ELEMENT) or (self.keys[-1] is not None) != is_object:
            return False
        self.keys.pop()
        self.next = COMMA if self.keys else END
        return True

    def _goes_on(self, expected: int, then: int) -> bool:
        is_expected, self.next = self.next == expected, then
        return is_expected

    def _names(self, token: str) -> bool:
        self.keys[-1] = _string(token)
        self.next = COLON
        return self.keys[-1] is not None

    def _says(self, token: str) -> bool:
        said = _string(token) if token.startswith('"') else token if json_tokens.WORD.fullmatch(token) else None
        if said is None or not self.keys or self.next not in (VALUE, ELEMENT):
            return False
        if None not in self.keys and len(self.keys) <= DEEPEST:
            name = ".".join(key(each or "") for each in self.keys)
            if len(name) <= LONGEST_NAME and name.isprintable():
                self.found[name] = said
        self.next = COMMA
        return True


def _string(token: str) -> str | None:
    try:
        return json_tokens.text_of(token)
    except json_tokens.NotJson:
        return None
