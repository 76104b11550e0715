"""Builds a condition from partial statements, with a uniquely named parameter for each value."""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any

from pgqueue_admin.dialects.statements import Statement

_PLACE = re.compile(r"%\((\w+)\)s")
_WHY = "Put together from parts."


class ConditionBuilder:
    """Builds bracketed conditions; ``params`` collects their parameters."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self._numbers = count(1)

    def of(self, part: Statement, within: str = "", **values: Any) -> str:
        """``within``: a condition to insert for ``{within}`` in the part."""
        number = next(self._numbers)
        self.params |= {f"{name}_{number}": value for name, value in values.items()}
        text = _PLACE.sub(lambda place: f"%({place[1]}_{number})s", part.text)
        return f"({text.replace('{within}', within)})"

    def all_of(self, texts: Iterable[str]) -> str:
        return f"({' and '.join(texts) or 'true'})"

    def any_of(self, texts: Iterable[str]) -> str:
        return f"({' or '.join(texts) or 'false'})"

    def excluding(self, text: str) -> str:
        """Negate; null counts as no match: a message without a type has no other type."""
        return f"({text} is not true)"

    def statement(self, like: Statement, text: str) -> Statement:
        """A partial statement of the same dialect, to be inserted in others."""
        return Statement("matches", _WHY, text, like.compose)
