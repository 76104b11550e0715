"""The ledger of message history: how far each table was read, in which batches, into which files."""

from datetime import datetime
from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.time_grains import midnight


class HistorySource(models.Model):
    """A table that history is read from, and how far. ``cursor_kind``: by snapshots, or by numbers (audit queues)."""

    table = models.CharField(max_length=200, unique=True, help_text="Its canonical address.")
    reader = models.UUIDField(
        default=uuid4, db_default=RandomUUID(), help_text="As which this ledger is known to others that read the table."
    )
    cursor_kind = models.CharField(max_length=10)
    snapshot = models.TextField(blank=True, help_text="All that was visible in it has been read.")
    snapshot_target = models.TextField(blank=True, help_text="The snapshot that is being read up to, in parts.")
    seq_done = models.BigIntegerField(default=0)
    oid = models.BigIntegerField(null=True, help_text="Of the table that was read; of another one nothing is.")
    sequence_file = models.BigIntegerField(null=True, help_text="Of its sequence: another one where it was restarted.")
    candidate_max_seq = models.BigIntegerField(
        null=True, help_text="Of numbers: the highest, when those who write were looked up."
    )
    candidate_at = models.DateTimeField(null=True, help_text="When that, or the snapshot's target, was looked up.")
    open_transactions = ArrayField(models.TextField(), default=list, help_text="Who was writing then, by transaction.")
    cluster = models.CharField(max_length=40, blank=True)
    timeline_start_lsn = models.BigIntegerField(
        null=True, help_text="Where the timeline in cluster began; null: not known."
    )
    wal_flush_lsn = models.BigIntegerField(
        null=True, help_text="Bytes of its server's log, when all that is known of it had been seen; and when that was:"
    )
    wal_flush_at = models.DateTimeField(null=True)
    watermark = models.DateTimeField(null=True, help_text="By the clock of the queues' server.")
    looked_at = models.DateTimeField(null=True)
    requested_at = models.DateTimeField(null=True, help_text="When somebody asked for it to be read now.")
    blocked_reason = models.TextField(blank=True, help_text="What keeps it back, if anything.")
    first_seen_at = TimestampField(auto_now_add=True)
    exists = models.BooleanField(default=True, help_text="A table that is gone keeps nothing back.")
    paused_until = models.DateTimeField(null=True, help_text="Somebody cancelled: not read before then, unless asked.")
    # db_default: during an upgrade, a driver of the previous version inserts sources until it is restarted
    events_snapshot = models.TextField(
        blank=True, default="", db_default="", help_text="Of the archive: events that were visible in it, and ..."
    )
    events_before = models.DateTimeField(null=True, help_text="... are from before this midnight (UTC), are in files.")


class HistoryBatch(models.Model):
    """A range to be read once. Retried as planned until an attempt commits; only then the source moves on."""

    class State(models.TextChoices):
        PLANNED = "planned"
        RUNNING = "running"
        DONE = "done"
        ABANDONED = "abandoned"

    class Step(models.TextChoices):
        """The last step that the running attempt finished."""

        WRITTEN = "written", "read and written"
        COMPARED = "compared", "read back and compared"
        COUNTED = "counted"

    source = models.ForeignKey(HistorySource, on_delete=models.CASCADE, related_name="batches")
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNED)
    step = models.CharField(max_length=10, choices=Step.choices, blank=True, help_text="Of the attempt that runs.")
    snapshot_from = models.TextField(blank=True)
    snapshot_to = models.TextField(blank=True)
    seq_lo = models.BigIntegerField()
    seq_hi = models.BigIntegerField()
    rows = models.BigIntegerField()
    seq_checksum = models.DecimalField(max_digits=40, decimal_places=0)
    # db_default: during an upgrade, a driver of the previous version plans batches until it is restarted
    relfilenodes = models.TextField(
        blank=True, default="", db_default="", help_text="Of numbers: where its table lay; elsewhere once rewritten."
    )
    is_last = models.BooleanField(help_text="Nothing more was there when it was planned.")
    watermark = models.DateTimeField()
    attempt = models.PositiveIntegerField(default=0)
    token = models.UUIDField(null=True, help_text="Of the attempt that runs: another one cannot commit in its place.")
    # db_default, as above
    attempt_tokens = ArrayField(
        models.UUIDField(), default=list, db_default=models.Value([], output_field=ArrayField(models.UUIDField())),
        help_text="Of all its attempts: a folder with any other was written by another ledger.",
    )  # fmt: skip
    code_version = models.CharField(max_length=64, blank=True)
    planned_at = TimestampField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    kept = models.BigIntegerField(null=True, help_text="Rows that went into history.")
    rejected = models.JSONField(default=dict, help_text="How many rows, by reason.")
    error = models.TextField(blank=True)
    aggregated_at = models.DateTimeField(null=True, help_text="When its hours were taken into what is usual.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=models.Q(state__in=["planned", "running"]), name="one_open_batch"
            )
        ]
        indexes = [
            models.Index(fields=["-planned_at"]),
            models.Index(fields=["source", "-ended_at"]),
            models.Index(fields=["id"], condition=models.Q(aggregated_at=None), name="batches_to_sum"),
            models.Index(fields=["id"], condition=~models.Q(rejected={}), name="batches_with_rejected"),
        ]

    @property
    def seconds(self) -> float | None:
        """Duration of the attempt that finished the batch."""
        if self.state != self.State.DONE or self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def per_second(self) -> float | None:
        return self.rows / self.seconds if self.seconds else None


class DataFile(models.Model):
    """The manifest of Parquet files in history. A file without a row here is not part of it."""

    class Dataset(models.TextChoices):
        HISTORY = "history"
        REJECTED = "rejected"
        DEPTH = "depth"
        EVENTS = "events"

    source = models.ForeignKey(
        HistorySource, null=True, on_delete=models.CASCADE, related_name="files", help_text="None: of depth."
    )
    dataset = models.CharField(max_length=10, choices=Dataset.choices, default=Dataset.HISTORY)
    path = models.CharField(max_length=400, unique=True, help_text="Below the history folder.")
    day = models.DateField(null=True, help_text="Of what is in it; of what was rejected nobody knows.")
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    added_at = TimestampField(auto_now_add=True, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["day"], condition=models.Q(dataset="depth"), name="one_depth_file_a_day")
        ]


class FileToken(models.Model):
    """Token of a depth or events file, stored before the file exists: a file with an unknown token is another ledger's.
    Attempts and compactions keep theirs in their own rows."""

    token = models.UUIDField(unique=True)


class FileBatch(models.Model):
    """How many rows of a batch a file holds. A compacted file holds rows of many batches."""

    file = models.ForeignKey(DataFile, on_delete=models.CASCADE, related_name="parts")
    batch = models.ForeignKey(HistoryBatch, on_delete=models.CASCADE, related_name="parts")
    rows = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "batch"], name="one_part_a_batch")]


class RecomputeRequest(models.Model):
    """A day (UTC) whose figures a person asked to recompute from its files."""

    day = models.DateField(unique=True)
    asked_at = models.DateTimeField(help_text="Last.")
    is_wanted = models.BooleanField(default=True, help_text="Not made anew yet, nor cancelled, nor failed.")
    recomputed_at = models.DateTimeField(null=True)
    aggregated_at = models.DateTimeField(null=True, help_text="When its hours were taken into what is usual since.")
    error = models.TextField(blank=True)

    @property
    def begin(self) -> datetime:
        return midnight(self.day)


class HistoryCompaction(models.Model):
    """Small files of a day merged into one: they are history until the merge is done, and the new file afterwards."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        ABANDONED = "abandoned"

    source = models.ForeignKey(HistorySource, on_delete=models.CASCADE, related_name="compactions")
    day = models.DateField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    token = models.UUIDField(help_text="Of its folder.")
    files = models.IntegerField(help_text="How many are to become one.")
    rows = models.BigIntegerField()
    bytes_before = models.BigIntegerField()
    bytes_after = models.BigIntegerField(null=True)
    started_at = TimestampField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=models.Q(state="running"), name="one_running_compaction"
            )
        ]
        indexes = [models.Index(fields=["source", "day", "-started_at"])]
