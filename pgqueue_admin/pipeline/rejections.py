"""What was read and could not be kept, by reason: the ledger knows."""

from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.asking import rows_of


class Rejected(NamedTuple):
    reason: str
    rows: int
    last: datetime


def rejections() -> list[Rejected]:
    """The most frequent reason first."""
    return [Rejected(*row) for row in rows_of(postgresql().trends.rejected())]
