"""Settings of a queue as a form: its targets, and whether it is emptied into the archive."""

from typing import Any

from django import forms

from pgqueue_admin.console.form_fields import DurationField
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import database_of, write_refusal
from pgqueue_admin.services.operations.acts_allowed import is_ours

MOST = 2_147_483_647
FOREIGN = ("input", "error", "audit", "platform")  # other programs may receive their messages


class QueueSettings(forms.Form):
    target_age_seconds = DurationField(label="Oldest message: target age", required=False)
    target_depth = forms.IntegerField(label="Messages waiting: target", min_value=0, max_value=MOST, required=False)
    target_dead = forms.IntegerField(label="Dead messages: target", min_value=0, max_value=MOST, required=False)
    ingest = forms.BooleanField(label="Move what arrives here into the archive", required=False)

    acts_allowed = forms.BooleanField(label="Acts on messages that wait here", required=False)

    def __init__(self, queue: Queue, data: Any = None):
        super().__init__(data, initial={name: getattr(queue, name) for name in self.base_fields})
        self.queue = queue
        address = Address(queue.schema, queue.table)
        if queue.kind != "error" or write_refusal(address):
            del self.fields["ingest"]
        self.is_elsewhere = bool(database_of(address).alias)  # delayed messages there cannot be acted on
        if queue.kind not in FOREIGN or is_ours(address) or write_refusal(address):
            del self.fields["acts_allowed"]

    def clean_target_age_seconds(self) -> int | None:
        age = self.cleaned_data["target_age_seconds"]
        if age is not None and age > MOST:
            raise forms.ValidationError("That is longer than a lifetime.")
        return None if age is None else int(age)

    @property
    def changes(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {name: given[name] for name in self.fields if given[name] != getattr(self.queue, name)}
