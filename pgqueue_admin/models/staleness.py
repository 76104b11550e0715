"""When figures are stale: the one limit for pages, ``/readyz`` and the warning (CONSOLE L6)."""

from datetime import datetime

from django.conf import settings

from pgqueue_admin.models import database_clock

MISSED_SAMPLES = 3


def limit() -> float:
    """Seconds after which the newest sample counts as stale: three samples."""
    return MISSED_SAMPLES * max(1.0, float(settings.PGQUEUE["SAMPLE_SECONDS"]))


def age(newest: datetime, now: datetime | None = None) -> float:
    """Seconds since this sample was taken."""
    return max(0.0, ((now or database_clock.now()) - newest).total_seconds())


def is_stale(newest: datetime | None, now: datetime | None = None) -> bool:
    """Whether so many samples are missing that every figure must show its age."""
    return newest is None or age(newest, now) > limit()
