"""Texts in ASCII: a value is sent, and a CLOB is kept, in the database's character set, which may lack their letters.

It would put another in the place of one that it lacks: two ids would be one, and a message would be taken for handled.
"""

import re

_BEYOND, _BEYOND_OR_BACKSLASH = re.compile(r"[^\x00-\x7f]"), re.compile(r"[^\x00-\x5b\x5d-\x7f]")


def for_unistr(text: str) -> str:
    r"""As SQL's ``unistr`` reads it: ``\00e4``."""
    return _BEYOND_OR_BACKSLASH.sub(lambda letter: _units(letter[0], "\\"), text)


def for_json(text: str) -> str:
    r"""JSON that means the same: ``\u00e4``. Its letters beyond ASCII are in strings alone."""
    return _BEYOND.sub(lambda letter: _units(letter[0], "\\u"), text)


def _units(letter: str, mark: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(mark + units[start : start + 4] for start in range(0, len(units), 4))
