"""SQL expressions that keep the values of PGQUEUE_MASKED_HEADERS in the queues' database."""

import re
from collections.abc import Sequence

MASKED = "(masked)"  # stands in the place of each; the statements that put it there say so too
_TRACE = "NServiceBus.ExceptionInfo.StackTrace"
_SAID_THERE = ("ExceptionType", "InnerExceptionType", "Message", "Source")
_IN_TRACE = {f"NServiceBus.ExceptionInfo.{name}" for name in _SAID_THERE}
_TEXT = r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
_VALUE = rf"(?:{_TEXT}|true|false|null|-?[0-9][0-9.eE+-]*)"
_PAIR = rf"\s*{_TEXT}\s*:\s*{_VALUE}\s*"
_LIKE, _BACKSLASHED = re.compile(r"[\\%_]"), r"\\\g<0>"
_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
# One object whose values hold no other, quoted as JSON quotes: of such a text alone it is known what in it is a name.
FLAT = rf"^\s*\{{(?:{_PAIR}(?:,{_PAIR})*|\s*)\}}\s*$"


def meant(names: Sequence[str]) -> list[str]:
    """A trace says type and message of the error once more, so it is masked with each of them."""
    return list(dict.fromkeys([*names, _TRACE])) if _IN_TRACE.intersection(names) else list(names)


def signs(names: Sequence[str]) -> list[str]:
    """Patterns for LIKE; a text that is like none of them holds none of the names, however they are written.

    In JSON a name stands as it is, or with letters as ``\\u0041``, a few also with a backslash before them.
    """
    letters = set("".join(names))
    escaped = {f"\\u{digits}" for letter in letters for digits in _first_two_digits(letter)}
    short = {f"\\{_SHORT[letter]}" for letter in letters & set(_SHORT)}
    return [f"%{_LIKE.sub(_BACKSLASHED, sign)}%" for sign in [*names, *sorted(escaped | short)]]


def masked(names: Sequence[str]) -> str:
    """Of a text that is FLAT, these names with their values; the name, as it is spelled there, is its first group."""
    return rf'"({"|".join("".join(map(_spelled, name)) for name in names)})"\s*:\s*{_VALUE}'


def _spelled(letter: str) -> str:
    """Each way in which JSON may write it."""
    ways = [_by_number(letter)]
    if letter in _SHORT:
        ways.append(rf"\\{_plain(_SHORT[letter])}")
    if letter not in '"\\':
        ways.append(_plain(letter))
    return f"(?:{'|'.join(ways)})"


def _by_number(letter: str) -> str:
    """One of sixteen bits, or a pair, in hexadecimal digits of either case."""
    return "".join(rf"\\u{''.join(_of_either_case(digit) for digit in unit)}" for unit in _units(letter))


def _units(letter: str) -> list[str]:
    return letter.encode("utf-16-be").hex(" ", -2).split()


def _first_two_digits(letter: str) -> set[str]:
    """Each of either case: ``D8`` as well as ``d8``."""
    first, second = ({digit, digit.upper()} for digit in list(_units(letter)[0])[:2])
    return {high + low for high in first for low in second}


def _of_either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def _plain(letter: str) -> str:
    return letter if letter.isalnum() else f"\\{letter}"
