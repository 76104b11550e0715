"""Total of an endpoint's messages that expired unread (T3)."""

from datetime import date, datetime
from typing import NamedTuple

from django.db.models import Max, Sum

from pgqueue_admin.models import Endpoint, ExpiredCount


class ExpiredTotal(NamedTuple):
    number: int
    at: datetime | None  # when the last were reported
    day: date | None  # of the last: rows from before ``last_at`` was kept have only the day


def of(endpoint: Endpoint) -> ExpiredTotal:
    """Sum over all days: the counters of processes end with them."""
    counts = ExpiredCount.objects.filter(queue__schema=endpoint.schema, queue__table=endpoint.table)
    return ExpiredTotal(**counts.aggregate(number=Sum("number", default=0), at=Max("last_at"), day=Max("day")))
