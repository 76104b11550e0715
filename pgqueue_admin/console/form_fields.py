"""Form fields that parse typed values."""

from typing import Any

from django import forms

from pgqueue_admin.formatting import durations


class DurationField(forms.CharField):
    """A duration as ``1 s`` or ``500 ms``; cleaned to a whole number of ``per_second`` parts (1000: milliseconds)."""

    def __init__(self, *, per_second: int = 1, **kwargs: Any):
        super().__init__(max_length=40, **kwargs)
        self.per_second = per_second

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        found = durations.parse(text, "s")
        if found is None:
            raise forms.ValidationError(f"“{text}” is not a duration. Try 500 ms, 1 s, 2 min or 5 days.")
        return round(found * self.per_second)

    def prepare_value(self, value: Any) -> Any:
        return durations.typed(value / self.per_second) if isinstance(value, int | float) else value
