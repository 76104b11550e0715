"""The form that acknowledges warnings: until when and why."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from pgqueue_admin.alerts.acknowledgements import LASTS, LONGEST, LONGEST_REASON
from pgqueue_admin.formatting import durations
from pgqueue_admin.models import database_clock

_HINT = "A length such as 4 h or 3 days, or a time such as 2026-11-30 09:00. At most {} days."


class UntilField(forms.CharField):
    """When an acknowledgement ends, typed as a duration or as a time in the person's zone; cleaned to a duration."""

    def clean(self, value: Any) -> timedelta | None:
        text = super().clean(value)
        if not text:  # optional
            return None
        lasts = _lasts(text)
        if lasts is None:
            raise forms.ValidationError(f"“{text}” is neither a length of time nor a time. Try 3 days.")
        if not timedelta() < lasts <= LONGEST:
            raise forms.ValidationError(f"Choose an end within the next {LONGEST.days} days.")
        return lasts


class AcknowledgementForm(forms.Form):
    until = UntilField(
        label="Until",
        max_length=40,
        initial=durations.typed(LASTS.total_seconds()),
        help_text=_HINT.format(LONGEST.days),
    )
    reason = forms.CharField(
        label="Reason", max_length=LONGEST_REASON, help_text="For those who come after you; it stays in the audit."
    )


def _lasts(text: str) -> timedelta | None:
    if (seconds := durations.parse(text)) is not None:
        return timedelta(seconds=min(seconds, LONGEST.total_seconds() * 2))
    try:
        at: datetime | None = parse_datetime(text)
        return (at if at.tzinfo else timezone.make_aware(at)) - database_clock.now() if at else None
    except (ValueError, OverflowError):  # a thirteenth month, a year outside the zone's range
        return None
