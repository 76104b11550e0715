"""The programs that docs/how-to/history.md shows beside Spark, run unchanged."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from pgqueue_admin.history.rollups.histogram import percentile
from pgqueue_admin.models import Rollup

_PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/history.md").read_text(encoding="utf-8")
_SQL = dict(re.findall(r"```sql\n-- (PostgreSQL|DuckDB)\b(.*?)```", _PAGE, re.DOTALL))
_SHARES = (0.5, 0.95, 0.99)
_NONE = (None, None, None)
Kind = tuple[datetime, str, str, str]


class _Row(NamedTuple):
    minute: datetime
    endpoint: str | None
    type: str | None
    result: str
    messages: int
    critical: list[Any] | None


def figures_are_those_of_plain_sql(database: Any) -> None:
    """Same numbers per kind and minute, and percentiles within one per cent."""
    _agree(_Row(*row) for row in database.all("--" + _SQL["PostgreSQL"]))


def figures_are_those_of_duckdb(paths: list[str]) -> None:
    """The same for files."""
    found = duckdb.execute("--" + _SQL["DuckDB"], {"paths": paths}).fetch_arrow_table()
    _agree(_Row(**row) for row in found.to_pylist())


def _agree(rows: Iterable[_Row]) -> None:
    plain: dict[Kind, _Row] = {(row.minute, row.endpoint or "", row.type or "", row.result): row for row in rows}
    messages, critical = _rolled_up()
    assert {kind: row.messages for kind, row in plain.items()} == dict(messages)
    for kind, row in plain.items():
        found = [percentile(critical[kind], share) for share in _SHARES]
        assert found == [_about(span) for span in row.critical or _NONE], kind


def _about(span: timedelta | int | None) -> Any:
    """A span in whole milliseconds, as history stores it."""
    if isinstance(span, timedelta):
        span //= timedelta(milliseconds=1)
    return None if span is None else pytest.approx(span, rel=0.0101)


def _rolled_up() -> tuple[Counter[Kind], dict[Kind, Counter[int]]]:
    messages: Counter[Kind] = Counter()
    critical: dict[Kind, Counter[int]] = defaultdict(Counter)
    for row in Rollup.objects.filter(grain="minute"):
        kind = row.at, row.endpoint, row.type, row.result
        messages[kind] += row.messages
        critical[kind].update(dict(zip(row.critical_buckets, row.critical_counts, strict=True)))
    return messages, critical
