"""Fills the placeholders of a statement, for drivers that take plain text and cannot quote identifiers."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.statements import Statement

_PLACE = re.compile(r"\{(\w+)\}")


def composed(
    text: str, identifiers: Mapping[str, Any], table: Callable[[Address], str], quoted: Callable[[str], str]
) -> str:
    """Compose an Address by ``table``, a text by ``quoted`` as one identifier, a number or a Statement unchanged."""

    def placed(place: re.Match[str]) -> str:
        value = identifiers[place[1]]
        if isinstance(value, Statement):
            return value.text
        if isinstance(value, int):
            return str(value)
        return table(value) if isinstance(value, Address) else quoted(value)

    return _PLACE.sub(placed, text)
