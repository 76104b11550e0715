"""Retention of rollups: minutes and hours for some days, days for ever."""

from datetime import datetime, timedelta

from django.conf import settings

_DAYS = {"minute": "TRENDS_MINUTE_RETENTION_DAYS", "hour": "TRENDS_HOUR_RETENTION_DAYS"}


def kept_for() -> dict[str, timedelta]:
    """By grain; an absent grain is kept for ever."""
    days = {grain: settings.PGQUEUE[name] for grain, name in _DAYS.items()}
    return {grain: timedelta(days=number) for grain, number in days.items() if number}


def failures_from(now: datetime) -> datetime | None:
    """Start of the kept failures and retry outcomes, which last as long as hours; None: for ever. Day counts stay."""
    kept = kept_for().get("hour")
    return now - kept if kept else None
