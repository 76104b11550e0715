"""Cells of a CSV file: other programs wrote the values, and a spreadsheet runs what looks like a formula."""

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """Prefix text that looks like a formula with an apostrophe; leave all else unchanged."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
