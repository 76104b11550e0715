"""A discovered queue table, its targets and settings, and the smallest TTBR seen in it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import OfSeenQueues, SeenQueues


class Queue(models.Model):
    """A queue past a target is off target. NULL means no target."""

    # prefixed by an alias, billing:public, if it is in a monitored database beside the first
    schema = models.CharField(max_length=300)
    table = models.CharField(max_length=128)
    kind = models.CharField(max_length=20)  # monitor.tables.Kind
    reason = models.TextField(blank=True, help_text="Why a table is of kind unknown.")
    target_age_seconds = models.PositiveIntegerField(null=True, blank=True)
    target_depth = models.PositiveIntegerField(null=True, blank=True)
    target_dead = models.PositiveIntegerField(null=True, blank=True)
    ingest = models.BooleanField(default=False, help_text="Move what arrives here into the archive. Error queues only.")
    acts_allowed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Messages may be taken out, moved and sent here, though no endpoint of ours receives from it.",
    )
    endpoint = models.CharField(
        max_length=200, blank=True, help_text="The endpoint whose input queue this is, if ours."
    )
    seq_end = models.BigIntegerField(null=True, help_text="The last number that its seq can take.")
    first_seen_at = TimestampField(auto_now_add=True)
    gone_since = models.DateTimeField(null=True)

    objects = SeenQueues["Queue"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["schema", "table"], name="queue_address")]
        ordering = ["schema", "table"]

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class MinimumTtbr(models.Model):
    """T16: kept while the queue is empty, so that the warning does not vanish with the messages."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="ttbrs")
    message_type = models.CharField(max_length=512)
    ttbr_ms = models.BigIntegerField()
    last_seen_at = models.DateTimeField()
    # last seven days, updated by history: how long these waited for a handler, how many expired
    delivery_buckets = ArrayField(
        models.IntegerField(), default=list, help_text="Buckets of history.rollups.histogram."
    )
    delivery_counts = ArrayField(models.BigIntegerField(), default=list, help_text="How many in each.")
    expired = models.BigIntegerField(default=0)

    objects = OfSeenQueues["MinimumTtbr"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "message_type"], name="smallest_ttbr_of_type")]


class ExpiredCount(models.Model):
    """How many messages of a type had expired when our receivers got them, by day."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="expired_counts")
    message_type = models.CharField(max_length=512)
    day = models.DateField()
    number = models.BigIntegerField(default=0)
    last_at = models.DateTimeField(null=True, help_text="When the last was told of. Null: before that was kept.")

    objects = OfSeenQueues["ExpiredCount"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "message_type", "day"], name="expired_of_type_and_day")]
