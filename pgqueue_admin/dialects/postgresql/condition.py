"""A condition put together from statements that are parts: each value a parameter of a name of its own."""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any

from pgqueue_admin.dialects.statements import Statement

_PLACE = re.compile(r"%\((\w+)\)s")
_WHY = "Put together from parts."


class ConditionBuilder:
    """Texts of conditions, each in brackets, and in ``params`` what they need."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self._numbers = count(1)

    def of(self, part: Statement, within: str = "", **values: Any) -> str:
        """``within``: another condition, for where the part says ``{within}``."""
        number = next(self._numbers)
        self.params |= {f"{name}_{number}": value for name, value in values.items()}
        text = _PLACE.sub(lambda place: f"%({place[1]}_{number})s", part.text)
        return f"({text.replace('{within}', within)})"

    def all_of(self, texts: Iterable[str]) -> str:
        return f"({' and '.join(texts) or 'true'})"

    def any_of(self, texts: Iterable[str]) -> str:
        return f"({' or '.join(texts) or 'false'})"

    def excluding(self, text: str) -> str:
        """Of what is not known to match, too: a message without a type is of no other type."""
        return f"({text} is not true)"

    def statement(self, like: Statement, text: str) -> Statement:
        """A part of the same dialect that other statements take in."""
        return Statement("matches", _WHY, text, like.compose)
