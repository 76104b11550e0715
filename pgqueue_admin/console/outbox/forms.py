"""Form for another program's outbox: relay and clean-up, each on or off."""

from django import forms

from pgqueue_admin.console.form_fields import DurationField
from pgqueue_admin.models import ForeignOutbox
from pgqueue_admin.services.outbox.switches import KEEP, RELAY_AFTER


class KeepingForm(forms.Form):
    relay = forms.BooleanField(label="Relay: send what its program leaves", required=False)
    relay_after = DurationField(label="Once it was seen waiting for")
    clean_up = forms.BooleanField(label="Clean-up: delete records of what was sent", required=False)
    keep = DurationField(label="Once they were kept for")

    @property
    def relay_seconds(self) -> int | None:
        return self.cleaned_data["relay_after"] if self.cleaned_data["relay"] else None

    @property
    def keep_seconds(self) -> int | None:
        return self.cleaned_data["keep"] if self.cleaned_data["clean_up"] else None

    @property
    def said(self) -> str:
        relay, clean_up = ("on" if self.cleaned_data[name] else "off" for name in ("relay", "clean_up"))
        return f"The relay is {relay}, clean-up is {clean_up}."

    @property
    def first_fault(self) -> str:
        name, faults = next(iter(self.errors.items()))
        return f"{self.fields[name].label}: {faults[0]}"


def of_row(row: ForeignOutbox | None) -> KeepingForm:
    relay, keep = (row.relay_seconds, row.keep_seconds) if row else (None, None)
    wanted = {"relay": relay is not None, "relay_after": relay or RELAY_AFTER}
    return KeepingForm(initial={**wanted, "clean_up": keep is not None, "keep": keep or KEEP})
