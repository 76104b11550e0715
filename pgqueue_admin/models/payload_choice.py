"""The body fields that each person shows as columns, by message type."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import models, transaction

from pgqueue_admin.models.fields import TimestampField

LONGEST_TYPE = 500
MOST = 500  # per person; the oldest choices are deleted first


class PayloadChoice(models.Model):
    """``fields``: paths in search syntax; empty: no column."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=LONGEST_TYPE, help_text="Full name; of a lease message its kind.")
    fields = models.JSONField(default=list)
    chosen_at = TimestampField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "type"], name="pgqueue_payloadchoice_type")]

    def __str__(self) -> str:
        return f"{self.type}: {', '.join(map(str, self.fields))}"


def of(person: Any, types: Collection[str]) -> dict[str, list[str]]:
    """Fields by type, for the types that this person chose for."""
    found = PayloadChoice.objects.filter(person=person, type__in=types)
    return {each.type: list(map(str, each.fields)) for each in found}


def keep(person: Any, chosen: Mapping[str, Sequence[str]]) -> None:
    with transaction.atomic():
        for type, fields in chosen.items():
            PayloadChoice.objects.update_or_create(person=person, type=type, defaults={"fields": list(fields)})
        newest = PayloadChoice.objects.filter(person=person).order_by("-chosen_at", "-pk")
        PayloadChoice.objects.filter(pk__in=list(newest.values_list("pk", flat=True)[MOST:])).delete()


def forget(person: Any, types: Collection[str]) -> None:
    PayloadChoice.objects.filter(person=person, type__in=types).delete()
