"""How many duplicates each endpoint's outbox caught, as its processes here reported; kept when these are gone."""

from django.db import models
from django.db.models import F
from django.db.models.functions import Now

from pgqueue_admin.models.fields import TimestampField


class CaughtDuplicates(models.Model):
    """Keyed by name: an endpoint that is withdrawn and created again continues its count."""

    endpoint = models.CharField(max_length=200, unique=True)
    number = models.BigIntegerField(default=0)
    since = TimestampField(auto_now_add=True, help_text="Nothing is known of before.")
    last_at = models.DateTimeField(null=True, help_text="When the last were told of.")

    def __str__(self) -> str:
        return f"duplicates of {self.endpoint}"


def add(endpoint: str, number: int) -> None:
    """Add to the count. A zero creates the row, so that ``since`` is known."""
    row, _ = CaughtDuplicates.objects.get_or_create(endpoint=endpoint)
    if number:
        CaughtDuplicates.objects.filter(pk=row.pk).update(number=F("number") + number, last_at=Now())


def by_endpoint() -> dict[str, CaughtDuplicates]:
    return {row.endpoint: row for row in CaughtDuplicates.objects.all()}
