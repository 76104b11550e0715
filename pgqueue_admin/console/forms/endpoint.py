"""The settings of an endpoint as a form (C5); their faults come from records, what they risk from alerts."""

from typing import Any

from django import forms

from pgqueue_admin.console.forms.fields import Span
from pgqueue_admin.records.endpoint_faults import LONGEST_PEEK_DELAY_MS, MOST_CONCURRENCY, MOST_MEMORY_MB
from pgqueue_admin.records.models import Endpoint

# of a foreign endpoint only these are declared: they are what warnings judge
DECLARED = ("peek_delay_ms", "max_records_to_peek", "concurrency")
ALLOWED = {
    "peek_delay_ms": "100 ms to 10 s; outside it is allowed with a warning",
    "max_records_to_peek": "1 or more; empty: as many as one peek counts",
    "concurrency": f"1 to {MOST_CONCURRENCY} in each process",
    "immediate_retries": "0 or more",
    "delayed_retries": "0 or more; after the immediate ones",
    "delayed_retry_step_ms": "the first waits this long, the second twice as long; at most 24 h",
    "on_exhausted": "archived as failed, or sent to the error queue",
    "error_queue": 'an address: "schema"."table"',
    "strict_peek_range": "on: a peek delay outside 100 ms to 10 s is refused",
    "memory_mb": "MB of resident memory; a process above it drains and is replaced; empty: no limit",
    "memory_kill_mb": "MB; above it a process is killed at once; larger than the first; empty: no limit",
    "drain_seconds": "how long a stopping process may finish what it has in hand",
}


class EndpointSettings(forms.Form):
    peek_delay_ms = Span(label="Peek delay", per_second=1000)
    max_records_to_peek = forms.IntegerField(label="Peek batch", min_value=1, max_value=1_000_000, required=False)
    concurrency = forms.IntegerField(label="Concurrency per process", min_value=1, max_value=MOST_CONCURRENCY)
    immediate_retries = forms.IntegerField(label="Immediate retries", min_value=0, max_value=1000)
    delayed_retries = forms.IntegerField(label="Delayed retries", min_value=0, max_value=1000)
    delayed_retry_step_ms = Span(label="Step of delayed retries", per_second=1000)
    on_exhausted = forms.ChoiceField(label="When retries are used up", choices=Endpoint.Exhausted.choices)
    error_queue = forms.CharField(label="Error queue", max_length=200, required=False)
    strict_peek_range = forms.BooleanField(label="Strict peek range", required=False)
    memory_mb = forms.IntegerField(label="Memory limit", min_value=1, max_value=MOST_MEMORY_MB, required=False)
    memory_kill_mb = forms.IntegerField(label="Killed above", min_value=1, max_value=MOST_MEMORY_MB, required=False)
    drain_seconds = Span(label="Drain time")

    def __init__(self, endpoint: Endpoint, data: Any = None):
        super().__init__(data, initial={name: getattr(endpoint, name) for name in self.base_fields})
        self.endpoint = endpoint
        if not endpoint.ours:
            self.fields = {name: field for name, field in self.fields.items() if name in DECLARED}
        for name, field in self.fields.items():
            field.help_text = ALLOWED[name]

    def clean_peek_delay_ms(self) -> int:
        delay = self.cleaned_data["peek_delay_ms"]
        if not 1 <= delay <= LONGEST_PEEK_DELAY_MS:
            raise forms.ValidationError("A peek delay is at least 1 ms and at most a day.")
        return int(delay)

    @property
    def changes(self) -> dict[str, Any]:
        """What is different from how the endpoint stands."""
        given = self.cleaned_data
        return {name: given[name] for name in self.fields if given[name] != getattr(self.endpoint, name)}
