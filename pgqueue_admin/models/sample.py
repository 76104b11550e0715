"""What the sampler measured: the newest figures of each queue, and their history."""

from django.db import models

from pgqueue_admin.models.scoped_managers import OfSeenQueues


class SampleFields(models.Model):
    """One queue at one instant. ``how``: how depth, ready and expired are known: counted, capped, estimate."""

    at = models.DateTimeField()
    ready = models.BigIntegerField(null=True)
    in_flight = models.BigIntegerField(null=True)
    delayed = models.BigIntegerField(null=True)
    expired = models.BigIntegerField(null=True)
    dead = models.BigIntegerField(null=True)
    depth = models.BigIntegerField(null=True)
    how = models.CharField(max_length=10, default="counted")
    delayed_how = models.CharField(max_length=10, default="counted")
    head_seq = models.BigIntegerField(null=True)
    tail_seq = models.BigIntegerField(null=True)
    sent_total = models.BigIntegerField(null=True, help_text="The sequence's last value.")
    in_per_second = models.FloatField(null=True)
    out_per_second = models.FloatField(null=True)
    oldest_at = models.DateTimeField(null=True, help_text="When the head arrived.")
    oldest_how = models.CharField(max_length=10, default="exact")  # exact to one sample; estimate (TimeSent); least
    next_due_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, help_text="Why this queue could not be read this time.")

    class Meta:
        abstract = True


class LatestSample(SampleFields):
    """One row per queue, updated in place."""

    queue = models.OneToOneField("Queue", on_delete=models.CASCADE, primary_key=True, related_name="latest")
    changed_at = models.DateTimeField(help_text="When depth last differed from the sample before.")
    last_departure_at = models.DateTimeField(null=True, help_text="When a message was last seen to leave.")
    ready_seq = models.BigIntegerField(null=True, help_text="The first that is neither in flight nor expired.")
    low_water_checked_at = models.DateTimeField(
        null=True, help_text="When nothing below head_seq was last made sure of."
    )
    overdue = models.BigIntegerField(null=True, help_text="Delayed messages that are due and still there.")
    size_bytes = models.BigIntegerField(null=True)
    sqlstate = models.CharField(
        max_length=5, blank=True, default="", db_default="", help_text="The server's code, where it refused."
    )

    objects = OfSeenQueues["LatestSample"]()


class Sample(SampleFields):
    """History: a row every ten seconds, thinned to one a minute after two hours, kept eight days."""

    queue = models.ForeignKey("Queue", on_delete=models.CASCADE, related_name="samples")

    objects = OfSeenQueues["Sample"]()

    class Meta:
        indexes = [models.Index(fields=["queue", "at"])]


class ArchiveSample(models.Model):
    """Dead messages in the archive, whichever queue they died in, also if that queue is gone."""

    at = models.DateTimeField(db_index=True)
    dead = models.BigIntegerField()
