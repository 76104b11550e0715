"""Where messages of a type, or dead in a queue, are retried to instead: for renamed queues."""

from django.db import models
from django.db.models import Q

from pgqueue_admin.models.fields import TimestampField


class RetryRule(models.Model):
    """Never changed, only replaced: the rule that an operation names stays as it was."""

    message_type = models.CharField(max_length=400, blank=True, help_text="* stands for anything. Empty: any.")
    queue = models.CharField(max_length=400, blank=True, help_text="Canonical address where it died. Empty: any.")
    target = models.CharField(max_length=400, help_text="Canonical address of a known input queue.")
    who = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = TimestampField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=~Q(message_type="", queue=""), name="retry_rule_names_something"),
            models.UniqueConstraint(fields=["message_type", "queue"], name="retry_rule_once"),
        ]

    def __str__(self) -> str:
        return f"rule {self.pk}"
