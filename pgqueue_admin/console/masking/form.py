"""A masking rule as a person types it."""

from typing import Any

from django import forms

from pgqueue_admin.models import MaskingRule
from pgqueue_admin.services.masking import rule
from pgqueue_admin.services.masking.rule_changes import TypedRule


class MaskingRuleForm(forms.Form):
    """The service reports why a rule is invalid, with the position."""

    name = forms.CharField(label="Name", max_length=rule.LONGEST_NAME, help_text="stands in the bar: Card numbers")
    kind = forms.ChoiceField(label="Kind", choices=list(rule.KINDS.items()))
    pattern = forms.CharField(
        label="Pattern",
        max_length=rule.LONGEST,
        help_text=r"header: Shop.Card* · JSON path: items[*].card, **.card · expression: \b\d{16}\b",
    )
    types = forms.CharField(
        label="Only of message types",
        max_length=rule.LONGEST * 4,
        required=False,
        help_text="with * and commas between them, such as Shop.Pay*, PlaceOrder; empty: of every type",
    )

    def __init__(self, data: Any = None, saved: MaskingRule | None = None):
        super().__init__(data, initial=fields_of(saved) if saved else None)

    @property
    def typed(self) -> TypedRule:
        """The rule of a valid form."""
        said = self.cleaned_data
        return TypedRule(said["name"], said["kind"], said["pattern"], said["types"].split(","))


def fields_of(saved: MaskingRule) -> dict[str, str]:
    return {"name": saved.name, "kind": saved.kind, "pattern": saved.pattern, "types": ", ".join(saved.types)}
