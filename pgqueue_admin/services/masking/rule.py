"""One masking rule, validated and compiled: by the name of a header, by a JSON path, or by a regular expression."""

import fnmatch
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from pgqueue_admin.services.masking.json_path import JsonPath, PathFault
from pgqueue_admin.services.masking.json_path import parse as parse_path

HEADER, PATH, REGEX = "header", "path", "regex"
KINDS = {HEADER: "Header", PATH: "JSON path", REGEX: "Regular expression"}
LONGEST = 500  # characters of a pattern
LONGEST_NAME = 60
MOST_TYPES = 20
_MEMORY = 1 << 20  # bytes of RE2 for one pattern; a larger program is refused
_NO_NAME = re.compile(r'[⟦⟧"\\<>]')
_SAID = {
    "no argument for repetition operator": "nothing stands before it that could be repeated",
    "invalid perl operator": "looking ahead or behind is not possible here, as it cannot be done in linear time",
    "invalid escape sequence": "this escape is not known here, and \\1 cannot be done in linear time",
}


class RuleFault(ValueError):
    """Why a rule is invalid, as a sentence that names the place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``types``: patterns of message types; empty: every type."""

    name: str
    kind: str
    pattern: str
    types: tuple[str, ...]
    header: re.Pattern[str] | None = None
    path: JsonPath | None = None
    regex: Any = None

    @property
    def bar(self) -> str:
        """The mask that replaces the hidden part. It does not reveal the part's length."""
        return f"⟦masked: {self.name}⟧"

    def fits(self, types: Collection[str]) -> bool:
        """Whether the rule applies to a message of these types. If the type is unknown, every rule applies."""
        return not (self.types and types) or any(_glob(each).fullmatch(name) for each in self.types for name in types)


@lru_cache(maxsize=512)
def ready(name: str, kind: str, pattern: str, types: tuple[str, ...]) -> Rule:
    """Validate and compile a rule. Raises RuleFault."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or _NO_NAME.search(name):
        raise RuleFault(f'Name: 1 to {LONGEST_NAME} printable characters without " \\ < > ⟦ ⟧.')
    if not pattern or len(pattern) > LONGEST or not pattern.isprintable():
        raise RuleFault(f"Pattern: 1 to {LONGEST} printable characters.")
    if len(types) > MOST_TYPES or any(len(each) > LONGEST or not each.isprintable() for each in types):
        raise RuleFault(f"Message types: at most {MOST_TYPES}, each a line of its own.")
    known = {"name": name, "kind": kind, "pattern": pattern, "types": types}
    if kind == HEADER:
        return Rule(**known, header=_glob(pattern))  # type: ignore[arg-type]
    if kind == PATH:
        try:
            return Rule(**known, path=parse_path(pattern))  # type: ignore[arg-type]
        except PathFault as error:
            raise RuleFault(f"Pattern: {error}") from error
    if kind == REGEX:
        return Rule(**known, regex=_regex(pattern))  # type: ignore[arg-type]
    raise RuleFault(f"A rule is one of {', '.join(KINDS.values())}.")


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern without regard to case: ``*`` matches any characters, all others are literal."""
    plain = pattern.replace("[", "[[]").replace("?", "[?]")
    return re.compile(fnmatch.translate(plain), re.IGNORECASE)


def _regex(pattern: str) -> Any:
    """Compile with RE2, whose time is linear in the text: no pattern and no message can block a page."""
    options = re2.Options()
    options.log_errors, options.max_mem, options.never_capture = False, _MEMORY, True
    try:
        found = re2.compile(pattern, options)
        matches_nothing = found.search("") is not None
    except (re2.error, UnicodeEncodeError) as error:
        raise RuleFault(f"Pattern: {_told(pattern, error)}") from error
    if matches_nothing:
        raise RuleFault("Pattern: it matches an empty text, so it says nothing of what is to be hidden.")
    return found


def _told(pattern: str, error: Exception) -> str:
    said = error.args[0] if error.args else ""
    said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    what, _, part = said.partition(": ")
    what = _SAID.get(what, what)
    place = pattern.find(part) if part else -1
    if "too large" in said:
        return "it is too large: repeat less, or fewer parts."
    return f"“{part}”, character {place + 1}: {what}." if place >= 0 else f"{said}."


def of_types(rules: Sequence[Rule], types: Collection[str]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.fits(types))
