"""Figures of history, per batch or merged: they add up; a day's are recomputed from its files."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from pgqueue_admin.models.baseline import BaselineSubject
from pgqueue_admin.models.history import HistoryBatch


def of_batch(name: str) -> "models.ForeignKey[HistoryBatch | None]":
    """The batch whose figures these are."""
    which = "Empty: of several, folded or made anew."
    return models.ForeignKey(HistoryBatch, null=True, on_delete=models.CASCADE, related_name=name, help_text=which)


class Rollup(models.Model):
    """Messages finished in one minute, hour or day. Rows of batches add up, as do histograms: counts by bucket."""

    batch = of_batch("rollups")
    grain = models.CharField(max_length=6)
    at = models.DateTimeField()
    queue = models.TextField()
    endpoint = models.TextField()
    type = models.TextField()
    result = models.CharField(max_length=20)
    exception = models.TextField()
    messages = models.BigIntegerField()
    skewed = models.BigIntegerField(help_text="Its clocks said that it ended before it began.")
    critical_buckets = ArrayField(models.IntegerField())
    critical_counts = ArrayField(models.BigIntegerField())
    processing_buckets = ArrayField(models.IntegerField())
    processing_counts = ArrayField(models.BigIntegerField())
    delivery_buckets = ArrayField(models.IntegerField())
    delivery_counts = ArrayField(models.BigIntegerField())

    class Meta:
        indexes = [
            *[models.Index(fields=[*names, "grain", "at"]) for names in ((), ("queue",), ("endpoint",))],
            models.Index(
                fields=["grain", "at"],
                condition=models.Q(batch__isnull=False) & ~models.Q(grain="minute"),
                name="rollups_to_fold",
            ),
        ]


class TimeBucket(BaselineSubject):
    """A finished hour or day over all batches: of a queue, an endpoint or a type; of all if nothing is named."""

    grain = models.CharField(max_length=6)

    class Meta:
        abstract = True


class CountBucket(TimeBucket):
    """Messages finished. The row of all exists for every step counted, and marks it as done."""

    succeeded = models.BigIntegerField()
    failed = models.BigIntegerField()
    skewed = models.BigIntegerField()
    retried = models.BigIntegerField(help_text="Messages that succeeded in it after they had failed.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "queue", "type", "grain", "at"], name="one_counted_step")
        ]
        indexes = [models.Index(fields=["grain", "at"])]


class LatencyBucket(TimeBucket):
    """Durations in buckets; no row if nothing was timed."""

    measure = models.CharField(max_length=10)
    p50 = models.IntegerField()
    p95 = models.IntegerField()
    p99 = models.IntegerField()
    bands = ArrayField(models.IntegerField())
    numbers = ArrayField(models.BigIntegerField(), help_text="How many in each of its bands.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "queue", "type", "measure", "grain", "at"], name="one_timed_step"
            )
        ]
        indexes = [models.Index(fields=["grain", "at"])]


class FailureFields(models.Model):
    """Failures of the same fingerprint in one step (docs/reference/history-data.md)."""

    at = models.DateTimeField()
    fingerprint = models.CharField(max_length=16)
    queue = models.TextField()
    endpoint = models.TextField()
    type = models.TextField()
    exception = models.TextField()
    message = models.TextField(help_text="Without ids, texts and numbers.")
    messages = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        abstract = True


class FailureBucket(FailureFields):
    """A finished hour or day over all batches, written once the step's CountBucket of all exists."""

    grain = models.CharField(max_length=6)

    class Meta:
        indexes = [models.Index(fields=["grain", "at"])]


class FailureRollup(FailureFields):
    """Per minute."""

    batch = of_batch("failures")

    class Meta:
        indexes = [models.Index(fields=["at"]), models.Index(fields=["fingerprint", "at"])]


class RetryOutcome(models.Model):
    """One batch's outcome of a message that failed or was retried in a minute. An endpoint's rows are one story."""

    batch = of_batch("retry_outcomes")
    message_id = models.TextField()
    queue = models.TextField()
    endpoint = models.TextField()
    type = models.TextField()
    exception = models.TextField(help_text="Of its last failure.")
    failed = models.IntegerField()
    succeeded = models.IntegerField()
    first_at = models.DateTimeField()
    last_failed_at = models.DateTimeField(null=True)
    last_succeeded_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=[name]) for name in ("message_id", "last_failed_at", "last_succeeded_at")]


class DepthBucket(models.Model):
    """Samples of a queue in one minute, hour or day. In hours and days the median is that of the minutes.

    Rates and age are null if no sample knew them, and in steps folded before these were kept.
    """

    grain = models.CharField(max_length=6)
    at = models.DateTimeField()
    queue = models.BigIntegerField(help_text="Its id; 0: all input queues together.")
    low = models.BigIntegerField()
    median = models.BigIntegerField()
    high = models.BigIntegerField()
    in_per_second = models.FloatField(null=True, help_text="The average of the minutes whose rates are known.")
    out_per_second = models.FloatField(null=True)
    rated_minutes = models.IntegerField(null=True, help_text="How many minutes these are.")
    oldest_seconds = models.FloatField(null=True, help_text="The longest that a first ready message was seen waiting.")
    oldest_at_least = models.BooleanField(null=True, help_text="It was there when looking began: maybe longer.")
    unread = models.IntegerField(null=True, help_text="Of all together: the most that could not be read at a look.")
    how = models.CharField(max_length=11, null=True, help_text="How its depths are known, the worst of them.")  # noqa: DJ001

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "grain", "at"], name="one_depth_a_step")]
        indexes = [models.Index(fields=["grain", "at"])]
