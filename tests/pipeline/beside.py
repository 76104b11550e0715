"""What docs/history.md shows beside Spark, run as it stands there."""

import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.pipeline.figures.histogram import percentile
from pgqueue_admin.records.models import Rollup

_PAGE = (Path(__file__).resolve().parents[2] / "docs/history.md").read_text(encoding="utf-8")
_SQL = re.compile(r"```sql\n(-- PostgreSQL.*?)```", re.DOTALL)
_SHARES = (0.5, 0.95, 0.99)
Kind = tuple[datetime, str, str, str]


def figures_are_those_of_plain_sql(database: Any) -> None:
    """As many of each kind in each minute, and percentiles within one per cent."""
    (sql,) = _SQL.findall(_PAGE)
    plain: dict[Kind, Any] = {
        (row.minute, row.endpoint or "", row.type or "", row.result): row for row in database.all(sql)
    }
    messages, critical = _rolled_up()
    assert {kind: row.messages for kind, row in plain.items()} == dict(messages)
    for kind, row in plain.items():
        found = [percentile(critical[kind], share) for share in _SHARES]
        assert found == [_about(span) for span in row.critical or [None] * 3], kind


def _about(span: timedelta | None) -> Any:
    """A span of whole milliseconds, as history keeps it."""
    return None if span is None else pytest.approx(span // timedelta(milliseconds=1), rel=0.0101)


def _rolled_up() -> tuple[Counter[Kind], dict[Kind, Counter[int]]]:
    messages: Counter[Kind] = Counter()
    critical: dict[Kind, Counter[int]] = defaultdict(Counter)
    for row in Rollup.objects.filter(grain="minute"):
        kind = row.at, row.endpoint, row.type, row.result
        messages[kind] += row.messages
        critical[kind].update(dict(zip(row.critical, row.critical_n, strict=True)))
    return messages, critical
