"""An act on one or many dead messages: frozen, started, finished. Its items are beside the queues."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import WhollySeen


class Operation(models.Model):
    """The intent. What happened to each message is in ``messages.operation_item`` and ``archive_event``."""

    class Kind(models.TextChoices):
        RETRY = "retry"
        DISCARD = "discard"
        RESTORE = "restore"
        CALL_BACK = "call back"
        PURGE = "purge"

    class State(models.TextChoices):
        FROZEN = "frozen"
        WAITING = "waiting"
        RUNNING = "running"
        PAUSED = "paused"
        STOPPED = "stopped"  # by the operation itself
        FOLLOWING = "following"  # all is sent, but the outcome of some messages is not known yet
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
    source = models.PositiveBigIntegerField(null=True, help_text="The operation whose messages it calls back.")
    restores = models.BooleanField(default=False, help_text="A retry of discarded messages.")
    up_to = models.BigIntegerField(null=True, help_text="The highest seq that a purge takes.")
    counted_in = models.JSONField(default=dict, blank=True, help_text="Of a purge: which table it was (archive.purge).")
    stays = models.PositiveIntegerField(null=True, help_text="Of a purge that has ended: still in the queue.")
    targets = models.JSONField(default=list, blank=True, help_text="No input queues: named by who started it.")
    rules = models.JSONField(default=list, blank=True, help_text="Of a retry: that were shown to who started it.")
    edit = models.JSONField(null=True, help_text="Of a retry: what is changed in each (services.operations.edits).")
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    created_at = TimestampField(auto_now_add=True)
    started_by = models.CharField(max_length=150, blank=True)
    started_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    keeps_set = models.BooleanField(default=False, help_text="Given up unstarted; its frozen set is still there.")

    objects = WhollySeen["Operation"]()

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
            ("reveal_masked", "Can reveal masked parts of messages, and change what is masked"),
        ]
