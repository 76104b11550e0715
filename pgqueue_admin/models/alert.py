"""The state of each warning, the mails it caused, and how far the alerter has read."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import OfSeenAlerts, OfSeenNames


class Alert(models.Model):
    """One open or closed warning. The code calls it an alert, the screen a Warning."""

    class Severity(models.TextChoices):
        CRITICAL = "critical"
        WARNING = "warning"

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=400, help_text="What it is about: a queue's address, an endpoint, a cause.")
    cause = models.CharField(max_length=400, blank=True)
    severity = models.CharField(max_length=10, choices=Severity.choices)
    queue = models.CharField(max_length=400, blank=True, help_text="Canonical address.")
    sentence = models.TextField(help_text="What, its value against its threshold; the time is added when it is shown.")
    meaning = models.TextField(blank=True, help_text="What it means and what to do next.")
    value = models.CharField(max_length=100, blank=True)
    threshold = models.CharField(max_length=100, blank=True)
    count = models.BigIntegerField(default=0)
    notified_count = models.BigIntegerField(default=0, help_text="The count that the last mail named.")
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_until = models.DateTimeField(null=True, help_text="It opens again then, if it is not over.")
    acknowledged_reason = models.CharField(max_length=200, blank=True)
    acknowledged_count = models.BigIntegerField(default=0, help_text="The count that somebody knew of.")

    objects = OfSeenNames["Alert"]()

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject", "cause"], condition=models.Q(resolved_at=None), name="one_open_alert"
            )
        ]


class AlertMail(models.Model):
    """Stored before it is sent, so that a killed alerter sends it again under the same Message-ID."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    class About(models.TextChoices):
        OPENED = "opened"
        GREW = "grew"
        RESOLVED = "resolved"
        TEST = "test"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="mails", null=True)  # a test mail has none
    about = models.CharField(max_length=10, choices=About.choices, default=About.OPENED)
    message_id = models.CharField(max_length=200, unique=True)
    in_reply_to = models.CharField(max_length=200, blank=True, help_text="The first mail of the thread.")
    to = models.TextField(help_text="Addresses, separated by a comma and a blank.")
    accepted_recipients = models.TextField(blank=True, help_text="Those of them who have it, while others are refused.")
    subject = models.CharField(max_length=200)
    text = models.TextField()
    html = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    created_at = TimestampField(auto_now_add=True)
    tried_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)

    objects = OfSeenAlerts["AlertMail"]()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "tried_at"])]

    @property
    def left(self) -> list[str]:
        """Recipients whose mail the server has not accepted."""
        taken = self.accepted_recipients.split(", ")
        return [to for to in self.to.split(", ") if to not in taken]


class Cursor(models.Model):
    """How far a consumer has read the archive: a replayable position, never a time."""

    name = models.CharField(max_length=50, primary_key=True)
    position = models.JSONField(default=dict)
    moved_at = TimestampField(auto_now=True)
