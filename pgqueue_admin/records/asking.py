"""Statements of the .sql files, put to the console's own database."""

from collections.abc import Mapping
from typing import Any

from django.db import connections


def rows_of(query: Any, values: Mapping[str, Any] | None = None) -> list[Any]:
    """All of them, as tuples."""
    with connections["default"].cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


def run(query: Any, values: Mapping[str, Any] | None = None) -> int:
    """How many rows it changed."""
    with connections["default"].cursor() as cursor:
        cursor.execute(query, values)
        return max(0, cursor.rowcount)
