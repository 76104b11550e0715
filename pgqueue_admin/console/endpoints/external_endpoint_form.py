"""An endpoint that runs elsewhere, as a person tells of it."""

from typing import Any

from django import forms

from pgqueue_admin.archive.error_queue_parser import NAME_BYTES
from pgqueue_admin.console.form_fields import DurationField
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.endpoint_validation import LONGEST_PEEK_DELAY_MS
from pgqueue_admin.models.queue_database import queue_database


class ExternalEndpointForm(forms.Form):
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
