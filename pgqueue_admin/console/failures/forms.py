"""What people record about a failure: its owner, and until when it is acknowledged."""

from typing import Any

from django import forms

from pgqueue_admin.console.alerts.acknowledgement_form import UntilField
from pgqueue_admin.formatting import durations
from pgqueue_admin.models.failure_group import LONGEST_NOTE, LONGEST_REASON, LONGEST_TICKET
from pgqueue_admin.services.failure_groups import LARGEST, LASTS, LONGEST, AcknowledgementEnd, Assignment


class AssignmentForm(forms.Form):
    owner = forms.CharField(label="Owner", max_length=150, required=False, help_text="A person or a team.")
    ticket = forms.CharField(
        label="Ticket", max_length=LONGEST_TICKET, required=False, help_text="An address becomes a link."
    )
    note = forms.CharField(
        label="Note",
        max_length=LONGEST_NOTE,
        required=False,
        help_text="Kept with the cause through every retry, and in its mails. No personal data, no secrets.",
    )

    @property
    def said(self) -> Assignment:
        return Assignment(**self.cleaned_data)


class FailureAcknowledgementForm(forms.Form):
    """An acknowledgement has exactly one end: the count if given, otherwise the time."""

    until = UntilField(
        label="Until",
        max_length=40,
        required=False,
        initial=durations.typed(LASTS.total_seconds()),
        help_text=f"A length such as 4 h, or a time such as 2026-11-30 09:00. At most {LONGEST.days} days.",
    )
    count = forms.IntegerField(
        label="Or until so many are dead",
        min_value=1,
        max_value=LARGEST,
        required=False,
        help_text="Instead of a time. Without it: at twice as many as now.",
    )
    reason = forms.CharField(label="Reason", max_length=LONGEST_REASON, required=False, help_text="Kept in the audit.")

    def clean(self) -> dict[str, Any] | None:
        given = super().clean()
        if given and not (given.get("until") or given.get("count") or self.errors):
            self.add_error("until", "Choose one end: a time or a count.")
        return given

    @property
    def end(self) -> AcknowledgementEnd:
        given: dict[str, Any] = self.cleaned_data
        return AcknowledgementEnd(count=given["count"]) if given["count"] else AcknowledgementEnd(given["until"])
