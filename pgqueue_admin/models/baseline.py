"""Message statistics by hour and day, the baseline that later weeks are compared with, and the anomalies found."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class BaselineSubject(models.Model):
    """An endpoint (its queue), or a queue of unknown endpoint, and a message type; an empty name means all."""

    at = models.DateTimeField(help_text="When the step begins.")
    queue = models.TextField()
    endpoint = models.TextField()
    type = models.TextField()

    class Meta:
        abstract = True


class BaselineBucket(BaselineSubject):
    """One hour or day. Each span lists histogram buckets: median, 95th percentile, the lower of that and the fifth
    slowest, 99th percentile."""

    grain = models.CharField(max_length=6)
    messages = models.BigIntegerField()
    failed = models.BigIntegerField()
    timed = models.BigIntegerField(null=True, help_text="With a critical time. Null: not counted.")
    critical = ArrayField(models.IntegerField(null=True), null=True)
    processing = ArrayField(models.IntegerField(null=True), null=True)
    delivery = ArrayField(models.IntegerField(null=True), null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "queue", "type", "grain", "at"], name="one_step_seen")
        ]
        indexes = [models.Index(fields=["grain", "at"])]


class Anomaly(BaselineSubject):
    """One hour far outside the usual band, with its numbers: milliseconds (slower), or messages."""

    class Kind(models.TextChoices):
        SLOWER = "slower"
        FAILURES = "failures"
        SILENCE = "silence"
        GROWTH = "growth"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    observed = models.FloatField()
    messages = models.BigIntegerField(null=True, help_text="Finished in that hour; of a depth nobody asks.")
    timed = models.BigIntegerField(null=True, help_text="Of these, with a critical time. Null: not counted.")
    median = models.FloatField()
    low = models.FloatField(help_text="Where the usual band begins.")
    high = models.FloatField(help_text="Where it ends.")
    weeks = models.SmallIntegerField(help_text="How many weeks before stand behind the band.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "endpoint", "queue", "type", "at"], name="one_unusual_hour")
        ]
        indexes = [models.Index(fields=["at"])]
