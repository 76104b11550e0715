"""What a cell of a CSV file may hold: others wrote it, and a spreadsheet runs what looks like a formula."""

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """A text that would be taken for a formula has an apostrophe before it; all else stays as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
