"""The last hour of many queues in one statement."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from pgqueue_admin.models import samples

POINTS = 30
STEP = 3600 // POINTS


def last_hour(queue_ids: Iterable[int], now: datetime) -> dict[int, list[int | None]]:
    """Thirty points a queue: the most that was ready in each two minutes. No sample leaves a gap."""
    first = int(now.timestamp()) // STEP - POINTS + 1
    points: dict[int, list[int | None]] = defaultdict(lambda: [None] * POINTS)
    for queue_id, step, ready in samples.most_ready(queue_ids, now - timedelta(seconds=3600 + STEP), STEP):
        if 0 <= step - first < POINTS:
            points[queue_id][step - first] = ready
    return points
