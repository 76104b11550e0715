"""Steps of time that figures are summed by: minutes, hours and days of UTC."""

from datetime import UTC, date, datetime, time, timedelta

STEPS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


def floor(at: datetime, grain: str) -> datetime:
    """When the step began in which it lies."""
    seconds = int(STEPS[grain].total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
