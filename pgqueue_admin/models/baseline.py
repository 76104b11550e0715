"""What was seen of each kind of message by hour and day, to be compared with the weeks before, and what was unusual."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class BaselineSubject(models.Model):
    """An endpoint (its queue), or a queue whose endpoint nobody knows, and a type; an empty name means all."""

    at = models.DateTimeField(help_text="When the step begins.")
    queue = models.TextField()
    endpoint = models.TextField()
    type = models.TextField()

    class Meta:
        abstract = True


class BaselineBucket(BaselineSubject):
    """One hour or day. Spans are buckets: of half, of 19 in 20, of the latter or the fifth slowest, of 99 in 100."""

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
    """One hour that was far from what is usual, with the numbers behind it: milliseconds (slower), or messages."""

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
