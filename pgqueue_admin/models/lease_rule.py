"""Rules of the lease queue as Django sees them: an engine table in ``queues``, read and never migrated."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class LeaseRule(models.Model):
    """A row of ``messages.lease_rule``: which dead messages of a kind are retried (docs/reference/lease-queue.md)."""

    id = models.BigIntegerField(primary_key=True)
    message_type = models.TextField("kind of message")
    results = ArrayField(models.TextField(), verbose_name="that ended as")
    times = models.IntegerField("retries at most")
    wait_seconds = models.IntegerField("first wait, seconds")
    who = models.TextField()
    reason = models.TextField()
    created_at = models.DateTimeField("made")

    class Meta:
        managed = False
        db_table = '"messages"."lease_rule"'
        default_permissions = ("view",)
        ordering = ["id"]

    def __str__(self) -> str:
        return f"lease rule {self.pk}"
