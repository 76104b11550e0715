"""Outbox tables that no endpoint of ours writes to, and what a person has switched on for each."""

from datetime import timedelta

from django.db import models


class ForeignOutbox(models.Model):
    """One row per decision; a table without a row is only monitored."""

    schema = models.CharField(max_length=63)
    table = models.CharField(max_length=63)
    dispatch_allowed = models.BooleanField(default=False, help_text="Its pending records may be sent by hand.")
    relay_seconds = models.PositiveIntegerField(
        null=True, help_text="How long a record was seen waiting when it is sent; empty: none is sent by itself."
    )
    keep_seconds = models.PositiveIntegerField(
        null=True, help_text="How long a dispatched record is kept; empty: none is deleted."
    )
    database = models.CharField(max_length=100, blank=True, help_text="The one that these two were switched on for.")
    looked_at = models.DateTimeField(null=True)
    relayed = models.BigIntegerField(default=0, help_text="Records sent by the relay.")
    cleaned = models.BigIntegerField(default=0, help_text="Records deleted by the clean-up.")
    trouble = models.TextField(blank=True, help_text="Why the last look did not do all that it should.")

    class Meta:
        verbose_name = "outbox"
        verbose_name_plural = "outboxes"
        ordering = ["schema", "table"]
        constraints = [models.UniqueConstraint(fields=["schema", "table"], name="pgqueue_foreignoutbox_table")]

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def relay_after(self) -> timedelta | None:
        return None if self.relay_seconds is None else timedelta(seconds=self.relay_seconds)

    @property
    def keep(self) -> timedelta | None:
        return None if self.keep_seconds is None else timedelta(seconds=self.keep_seconds)


def kept() -> models.QuerySet[ForeignOutbox]:
    """Outboxes with a relay or a clean-up switched on."""
    return ForeignOutbox.objects.exclude(relay_seconds=None, keep_seconds=None)
