"""A path to a part of a JSON document: ``order.card``, ``items[*].card``, ``*.card``, ``**.card``."""

import re
from dataclasses import dataclass
from itertools import pairwise

ANY, DEEP = "*", "**"
MOST = 20  # names of one path
_ROOT = re.compile(r"\$\.?")
_NAME = re.compile(r'"(?P<quoted>[^"]+)"|(?P<plain>[^."\[\]\s][^."\[\]]*)')
_INDEX = re.compile(r"\s*[+-]?\d+\s*")
_ELEMENTS = re.compile(r"(?:\[\*?\])+")

Places = frozenset[int]  # numbers of names matched so far: several after a **


class PathFault(ValueError):
    """Why a path is invalid, with the place."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Elements of a list have the path of the list. Names compare without regard to case, as in many readers."""

    names: tuple[str, ...]

    start = frozenset({0})

    def step(self, places: Places, name: str) -> Places:
        """Return the places within a field of this name."""
        found = set[int]()
        for place in self._here(places):
            if place < len(self.names) and self.names[place] == DEEP:
                found.add(place)
            elif place < len(self.names) and self.names[place] in (ANY, name.casefold()):
                found.add(place + 1)
        return frozenset(found)

    def ends(self, places: Places) -> bool:
        return len(self.names) in places

    def hides(self, keys: tuple[str, ...]) -> bool:
        """Whether the value at these keys is a hidden part, or lies in one."""
        return self._follow(keys)[0]

    def meets(self, keys: tuple[str, ...]) -> bool:
        """Whether the value is hidden or may hold a hidden part."""
        is_hidden, places = self._follow(keys)
        return is_hidden or bool(places)

    def _follow(self, keys: tuple[str, ...]) -> tuple[bool, Places]:
        """Follow the keys. A number may be an index into a list, which is no level of a path."""
        places: Places = self.start
        for key in keys:
            places = self.step(places, key) | (places if _INDEX.fullmatch(key) else frozenset())
            if self.ends(places):
                return True, places
        return False, places

    def _here(self, places: Places) -> set[int]:
        """Add the places behind a ``**``, which may match no names at all."""
        found = set(places)
        for place in sorted(places):
            if place < len(self.names) and self.names[place] == DEEP:
                found.add(place + 1)
        return found


def parse(text: str) -> JsonPath:
    """Raises PathFault."""
    root = _ROOT.match(text)
    at = root.end() if root else 0
    names: list[str] = []
    while True:
        found = _NAME.match(text, at)
        if found is None:
            raise PathFault(f"character {at + 1}: a name is missing. Write order.card or items[*].card.")
        names.append((found["quoted"] or found["plain"]).casefold())
        at = found.end()
        if elements := _ELEMENTS.match(text, at):
            at = elements.end()
        if at == len(text):
            break
        if text[at] != ".":
            raise PathFault(f"“{text[at:][:20]}”, character {at + 1}: of a list each element is meant. Write [*].")
        at += 1
    return _checked(names)


def _checked(names: list[str]) -> JsonPath:
    if len(names) > MOST:
        raise PathFault(f"a path has at most {MOST} names.")
    if names[-1] == DEEP:
        raise PathFault("** stands before a name: write **.card.")
    if any(one == other == DEEP for one, other in pairwise(names)):
        raise PathFault("one ** stands for any number of levels: write it once.")
    return JsonPath(tuple(names))
