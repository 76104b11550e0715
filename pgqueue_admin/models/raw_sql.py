"""Statements of models/sql/*.sql, run on the console's own database."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import connections

from pgqueue_admin.dialects.postgresql.dialect import compose
from pgqueue_admin.dialects.statements import Statements

_FOLDER = Path(__file__).parent / "sql"


class ConsoleSql:
    """A .sql file by its name: ``console_sql.samples.steps()``. The console's own database is always PostgreSQL."""

    def __getattr__(self, noun: str) -> Statements:
        path = _FOLDER / f"{noun}.sql"
        if noun.startswith("_") or not path.exists():
            raise AttributeError(f"there is no {path.name} in {_FOLDER.name}/")
        statements = Statements(path, compose)
        setattr(self, noun, statements)
        return statements


console_sql = ConsoleSql()


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
