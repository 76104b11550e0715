"""What was read and could not be kept, by reason: the ledger knows."""

from datetime import datetime
from typing import NamedTuple

from django.db import connections

from pgqueue_admin.dialects.postgresql import postgresql


class Rejected(NamedTuple):
    reason: str
    rows: int
    last: datetime


def rejections() -> list[Rejected]:
    """The most frequent reason first."""
    with connections["default"].cursor() as cursor:
        cursor.execute(postgresql().trends.rejected())
        return [Rejected(*row) for row in cursor.fetchall()]
