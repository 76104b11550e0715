"""What was read and could not be kept, by reason: the ledger knows."""

from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.models.raw_sql import console_sql, rows_of


class RejectedRow(NamedTuple):
    reason: str
    rows: int
    last: datetime


def rejections() -> list[RejectedRow]:
    """The most frequent reason first."""
    return [RejectedRow(*row) for row in rows_of(console_sql.trends.rejected())]
