"""Whether Spark's tasks go on: Java may answer while what it waits for stands still, a worker that was stopped, say."""

import time
from typing import Any

EVERY = 30.0  # seconds from one look to the next
STILL = 1800.0  # seconds in which some task of those at work has ended, however little processor they get


class BatchProgress:
    """Of one act of Spark's, looked at beside it."""

    def __init__(self, spark: Any):
        self._spark = spark
        self._seen: frozenset[tuple[int, int]] = frozenset()
        self._since = self._looked = time.monotonic()

    def is_stuck(self) -> bool:
        """Looks now and then; what happens between two acts of Spark's is no standstill."""
        now = time.monotonic()
        if now < self._looked + min(EVERY, STILL / 2):
            return False
        self._looked = now
        seen = self._ended()
        if not seen or seen != self._seen:
            self._seen, self._since = seen, now
        return now >= self._since + STILL

    def _ended(self) -> frozenset[tuple[int, int]]:
        """How many tasks have ended of each stage at work."""
        tracker = self._spark.sparkContext.statusTracker()
        known = ((stage, tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds())
        return frozenset((stage, info.numCompletedTasks) for stage, info in known if info)
