"""SQL expressions that keep the values of PGQUEUE_MASKED_HEADERS in the queues' database."""

import re
from collections.abc import Sequence

MASKED = "(masked)"  # replaces each value; the statements spell it out too
_TRACE = "NServiceBus.ExceptionInfo.StackTrace"
_SAID_THERE = ("ExceptionType", "InnerExceptionType", "Message", "Source")
_IN_TRACE = {f"NServiceBus.ExceptionInfo.{name}" for name in _SAID_THERE}
_TEXT = r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
_VALUE = rf"(?:{_TEXT}|true|false|null|-?[0-9][0-9.eE+-]*)"
_PAIR = rf"\s*{_TEXT}\s*:\s*{_VALUE}\s*"
_LIKE, _BACKSLASHED = re.compile(r"[\\%_]"), r"\\\g<0>"
_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
# One object without nested values, in strict JSON: only there is it certain which texts are names.
FLAT = rf"^\s*\{{(?:{_PAIR}(?:,{_PAIR})*|\s*)\}}\s*$"


def meant(names: Sequence[str]) -> list[str]:
    """Adds the stack trace to any masked name whose value it repeats (the error's type and message)."""
    return list(dict.fromkeys([*names, _TRACE])) if _IN_TRACE.intersection(names) else list(names)


def signs(names: Sequence[str]) -> list[str]:
    """LIKE patterns: a text that matches none contains none of the names, in any spelling.

    JSON may write a name plainly, with letters as ``\\u0041``, and a few characters with a backslash.
    """
    letters = set("".join(names))
    escaped = {f"\\u{digits}" for letter in letters for digits in _first_two_digits(letter)}
    short = {f"\\{_SHORT[letter]}" for letter in letters & set(_SHORT)}
    return [f"%{_LIKE.sub(_BACKSLASHED, sign)}%" for sign in [*names, *sorted(escaped | short)]]


def masked(names: Sequence[str]) -> str:
    """Pattern for these names with their values in FLAT text; group 1 is the name as spelled there."""
    return rf'"({"|".join("".join(map(_spelled, name)) for name in names)})"\s*:\s*{_VALUE}'


def _spelled(letter: str) -> str:
    """Pattern for every JSON spelling of a letter."""
    ways = [_by_number(letter)]
    if letter in _SHORT:
        ways.append(rf"\\{_plain(_SHORT[letter])}")
    if letter not in '"\\':
        ways.append(_plain(letter))
    return f"(?:{'|'.join(ways)})"


def _by_number(letter: str) -> str:
    """One 16-bit escape, or a surrogate pair, with hexadecimal digits in either case."""
    return "".join(rf"\\u{''.join(_of_either_case(digit) for digit in unit)}" for unit in _units(letter))


def _units(letter: str) -> list[str]:
    return letter.encode("utf-16-be").hex(" ", -2).split()


def _first_two_digits(letter: str) -> set[str]:
    """The first two digits, each in either case: ``D8`` and ``d8``."""
    first, second = ({digit, digit.upper()} for digit in list(_units(letter)[0])[:2])
    return {high + low for high in first for low in second}


def _of_either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def _plain(letter: str) -> str:
    return letter if letter.isalnum() else f"\\{letter}"
