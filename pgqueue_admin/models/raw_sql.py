"""Statements of models/sql/*.sql, run on the console's own database."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import connections

from pgqueue_admin.dialects.postgresql.dialect import compose
from pgqueue_admin.dialects.statements import StatementFolder

# always PostgreSQL
console_sql = StatementFolder("the console", Path(__file__).parent / "sql", compose)


def rows_of(query: Any, values: Mapping[str, Any] | None = None) -> list[Any]:
    """All rows, as tuples."""
    with connections["default"].cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


def run(query: Any, values: Mapping[str, Any] | None = None) -> int:
    """Run it and return the number of rows changed."""
    with connections["default"].cursor() as cursor:
        cursor.execute(query, values)
        return max(0, cursor.rowcount)
