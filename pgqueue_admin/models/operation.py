"""An act on one or many dead messages: frozen, started, finished. Its items live beside the queues."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField


class Operation(models.Model):
    """The intent; what really happened to each message is in ``messages.operation_item`` and ``archive_event``."""

    class Kind(models.TextChoices):
        RETRY = "retry"
        DISCARD = "discard"
        RESTORE = "restore"

    class State(models.TextChoices):
        FROZEN = "frozen"
        WAITING = "waiting"
        RUNNING = "running"
        PAUSED = "paused"
        STOPPED = "stopped"  # by itself
        FOLLOWING = "following"  # all that will be sent is sent, and not of each it is known what came of it
        DONE = "done"
        CANCELLED = "cancelled"
        LAPSED = "lapsed"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.FROZEN)
    who = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    origin = models.CharField(max_length=20)
    selection = models.TextField(blank=True, help_text="The filter that chose the messages, or empty for ticked ones.")
    count = models.PositiveIntegerField(default=0)
    queues = models.JSONField(default=dict, help_text="Count by target address, as frozen.")
    targets = models.JSONField(default=list, blank=True, help_text="No input queues: named by who started it.")
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    created_at = TimestampField(auto_now_add=True)
    started_by = models.CharField(max_length=150, blank=True)
    started_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state"])]
        permissions = [
            ("retry_message", "Can retry dead messages"),
            ("discard_message", "Can discard and restore dead messages"),
            ("run_endpoint", "Can start, stop, scale and pause endpoints"),
            ("change_settings", "Can change peek settings and targets"),
            ("change_schedule", "Can change schedules and send their messages"),
            ("read_message", "Can read message bodies and headers' values"),
        ]
