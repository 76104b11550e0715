"""The form of an endpoint's settings (C5): models find the faults, alerts the risks."""

from copy import copy
from typing import Any

from django import forms

from pgqueue_admin.archive.error_queue_parser import NAME_BYTES
from pgqueue_admin.console.endpoints import fieldsets
from pgqueue_admin.console.form_fields import DurationField
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.endpoint_validation import LONGEST_PEEK_DELAY_MS, faults
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.processes import destination_check


class EndpointSettingsForm(forms.Form):
    peek_delay_ms = DurationField(label="Peek delay", per_second=1000)
    max_records_to_peek = forms.IntegerField(label="Peek batch", required=False)
    concurrency = forms.IntegerField(label="Concurrency per process")
    batch_size = forms.IntegerField(label="Messages a transaction")
    transaction_mode = forms.ChoiceField(label="Transaction mode", choices=Endpoint.Mode.choices)
    repeek_after = forms.ChoiceField(label="Peek again when", choices=Endpoint.Repeek.choices)
    notify = forms.BooleanField(label="Wake by NOTIFY", required=False)
    purge_expired_at_start = forms.BooleanField(label="Delete expired messages at a start", required=False)
    strict_peek_range = forms.BooleanField(label="Strict peek range", required=False)
    immediate_retries = forms.IntegerField(label="Immediate retries")
    delayed_retries = forms.IntegerField(label="Delayed retries")
    delayed_retry_step_ms = DurationField(label="Step of delayed retries", per_second=1000)
    on_exhausted = forms.ChoiceField(label="When retries are used up", choices=Endpoint.Exhausted.choices)
    error_queue = forms.CharField(label="Error queue", max_length=200, required=False)
    audit_queue = forms.CharField(label="Audit queue", max_length=200, required=False)
    audit_ttbr_seconds = DurationField(label="Copies live", required=False)
    subscription_table = forms.CharField(label="Subscription table", max_length=200, required=False)
    outbox = forms.ChoiceField(label="Outbox", choices=Endpoint.Outbox.choices)
    outbox_isolation = forms.ChoiceField(label="Isolation", choices=Endpoint.Isolation.choices)
    outbox_keep_seconds = DurationField(label="Keep records")
    outbox_clean_seconds = DurationField(label="Clean up every", required=False)
    outbox_relay_seconds = DurationField(label="Relay after", required=False)
    lock_seconds = DurationField(label="Lock")
    on_lock_expired = forms.ChoiceField(label="When a lock expires", choices=Endpoint.LockExpired.choices)
    renewed_for_seconds = DurationField(label="Renewed for", required=False)
    archive_success = forms.BooleanField(label="Successes are archived", required=False)
    memory_mb = forms.IntegerField(label="Memory limit", required=False)
    memory_kill_mb = forms.IntegerField(label="Killed above", required=False)
    drain_seconds = DurationField(label="Drain time")

    def __init__(self, endpoint: Endpoint, data: Any = None):
        super().__init__(data, initial={name: getattr(endpoint, name) for name in self.base_fields})
        self.endpoint, self._shown = endpoint, fieldsets.shown(endpoint)
        allowed = {name: said for names in self._shown.values() for name, said in names.items()}
        self.fields = {name: field for name, field in self.fields.items() if name in allowed}
        for name, field in self.fields.items():
            field.help_text = allowed[name]

    def clean(self) -> dict[str, Any]:
        """Report all errors at once, each beside its field."""
        found = faults(self.wanted)
        found |= destination_check.faults(self.wanted, [name for name in self._newly_used() if name not in found])
        for field, fault in found.items():
            if field in self.fields and not self.has_error(field):
                self.add_error(field, fault)
        return self.cleaned_data

    @property
    def wanted(self) -> Endpoint:
        """The endpoint as it would be. A field that could not be parsed keeps its present value."""
        row = copy(self.endpoint)
        for name, value in self.cleaned_data.items():
            setattr(row, name, value)
        return row

    @property
    def changes(self) -> dict[str, Any]:
        """Values that differ from the endpoint's present ones."""
        given = self.cleaned_data
        return {name: given[name] for name in self.fields if name in given and given[name] != self._stands(name)}

    @property
    def first(self) -> tuple[str, list[forms.BoundField]]:
        """The group of the settings that are changed most, with its title."""
        return self._groups[0]

    @property
    def rest(self) -> list[tuple[str, list[forms.BoundField]]]:
        """All other groups."""
        return self._groups[1:]

    @property
    def rest_is_open(self) -> bool:
        """Whether another group must be visible: a field of it was changed, or has an error."""
        shown = {*self.errors, *self.changes} if self.is_bound else set()
        return bool(shown - {field.name for field in self.first[1]})

    @property
    def _groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        return [(title, [self[name] for name in names]) for title, names in self._shown.items()]

    def _stands(self, name: str) -> Any:
        return getattr(self.endpoint, name)

    def _newly_used(self) -> list[str]:
        """Check only tables newly used: a table that has gone must not forbid every other change."""
        changed, wanted = self.changes, self.wanted
        sends = "on_exhausted" in changed and wanted.on_exhausted == Endpoint.Exhausted.ERROR_QUEUE
        keeps = wanted.has_outbox and not self.endpoint.has_outbox
        also = {"error_queue": sends, "outbox": keeps}
        return [name for name in destination_check.TABLES if name in changed or also.get(name)]


class ExternalEndpointForm(forms.Form):
    """An endpoint that runs elsewhere, as a person declares it."""

    name = forms.CharField(label="Its name", max_length=200)
    queue = forms.CharField(label="Its input queue", max_length=200, help_text='"schema"."table"; empty: as its name')
    peek_delay_ms = DurationField(label="Its peek delay", per_second=1000, initial=1000)

    def __init__(self, data: Any = None):
        super().__init__(data)
        self.fields["queue"].required = False

    def clean_name(self) -> str:
        name = self.cleaned_data["name"]
        if Endpoint.objects.filter(name=name).exists():
            raise forms.ValidationError(f"There is an endpoint named {name} already: change it on its own page.")
        return str(name)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if "name" in given and "queue" in given:
            given["address"] = self._address(given["queue"] or f'"{given["name"]}"')
        return given

    def clean_peek_delay_ms(self) -> int:
        delay = self.cleaned_data["peek_delay_ms"]
        if not 1 <= delay <= LONGEST_PEEK_DELAY_MS:
            raise forms.ValidationError("A peek delay is at least 1 ms and at most a day.")
        return int(delay)

    def _address(self, text: str) -> Any:
        try:
            address = queue_database().dialect.parse_address(text, queue_database().default_schema)
        except AddressUnreadable as error:
            return self.add_error("queue", str(error))
        for part in address:
            if (size := len(part.encode())) > NAME_BYTES:
                said = f"{part} has {size} bytes; the name of a schema or table has {NAME_BYTES} bytes at most."
                return self.add_error("queue", said)
        return address
