"""Messages that were in flight when a process crashed: one row per message and crash."""

from django.db import models

from pgqueue_admin.models.scoped_managers import OfSeenAddresses


class InFlightAtCrash(models.Model):
    """A message that crashes its process never fails: it rolls back and is received again. Only these rows record it.

    ``seq`` and ``row_id`` survive each rollback, so they identify the message.
    """

    endpoint = models.CharField(max_length=200)
    schema = models.CharField(max_length=63)
    table = models.CharField(max_length=63)
    row_id = models.UUIDField()
    seq = models.BigIntegerField()
    message_id = models.CharField(max_length=100, blank=True)
    message_type = models.CharField(max_length=120, blank=True)
    received_at = models.DateTimeField()
    died_at = models.DateTimeField()
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    start_ticks = models.BigIntegerField()
    exit_code = models.IntegerField(help_text="Negative: the number of the signal.")
    how = models.CharField(max_length=200, help_text="How the process ended, in words.")
    others_in_flight = models.PositiveIntegerField(default=0, help_text="Other messages in its hands at that moment.")
    resolved_at = models.DateTimeField(null=True, help_text="When the message had left its queue.")

    objects = OfSeenAddresses["InFlightAtCrash"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["host", "pid", "start_ticks", "row_id"], name="held_once_at_a_death")
        ]
        indexes = [
            models.Index(fields=["row_id", "died_at"]),
            models.Index(fields=["endpoint"], condition=models.Q(resolved_at=None), name="held_not_settled"),
        ]

    @property
    def seconds(self) -> float:
        """How long it was in flight."""
        return max(0.0, (self.died_at - self.received_at).total_seconds())
