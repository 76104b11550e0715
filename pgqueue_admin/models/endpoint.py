"""An endpoint's settings and desired state: one row, read by its workers and by the supervisor."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import OfSeenAddresses

OUTBOX_OFF = (
    "The mode none switches the outbox off: a message is gone before its handler runs, so there is no copy to "
    "recognise and nothing to send again."
)


class Endpoint(models.Model):
    """Ours (run by the supervisor) or foreign (only declared, for warnings).

    A change is saved, then announced with NOTIFY ``pgqueue_endpoint`` (payload: the name) on ``default``.
    """

    class Kind(models.TextChoices):
        """The kind of queue it receives from. ``endpoint_kinds`` lists the settings of each."""

        TRANSPORT = "transport", "queue of its own"
        LEASE = "lease", "lease queue"

    class Exhausted(models.TextChoices):
        ARCHIVE = "archive", "archived as failed"
        ERROR_QUEUE = "error_queue", "sent to the error queue"

    class Mode(models.TextChoices):
        SENDS_ATOMIC_WITH_RECEIVE = "sends_atomic_with_receive", "sends atomic with receive: one commit"
        RECEIVE_ONLY = "receive_only", "receive only: sends are committed before"
        NONE = "none", "none: deleted before its handler runs"

    class Repeek(models.TextChoices):
        RECEIVES = "receives", "the receives have answered"
        HANDLERS = "handlers", "the handlers are done"

    class LockExpired(models.TextChoices):
        ARCHIVE = "archive", "archived as lock_expired"
        RELEASE = "release", "released for another go"

    class Outbox(models.TextChoices):
        """How the outbox keeps apart two copies of one message received at once (O3, O4)."""

        OFF = "off", "off"
        OPTIMISTIC = "optimistic", "optimistic: both may run, one is undone"
        PESSIMISTIC = "pessimistic", "pessimistic: the second waits"

    class Isolation(models.TextChoices):
        """``default``: the engine's default, a stricter one if several databases commit together (O6)."""

        DEFAULT = "default", "default"
        READ_COMMITTED = "read_committed", "Read Committed"
        REPEATABLE_READ = "repeatable_read", "Repeatable Read"
        SERIALIZABLE = "serializable", "Serializable"
        SNAPSHOT = "snapshot", "Snapshot"

    name = models.CharField(max_length=200, unique=True)
    # db_default: during an upgrade, processes of the previous version insert rows without these columns
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.TRANSPORT, db_default=Kind.TRANSPORT)
    ours = models.BooleanField(default=True)
    schema = models.CharField(max_length=63, default="public")
    table = models.CharField(max_length=63)
    error_queue = models.CharField(max_length=200, blank=True, help_text="Canonical address.")
    # desired state
    desired_processes = models.PositiveIntegerField(default=0)
    paused = models.BooleanField(default=False)
    drain_seconds = models.PositiveIntegerField(default=30)
    memory_mb = models.PositiveIntegerField(
        null=True, blank=True, help_text="A process above it drains and is replaced."
    )
    memory_kill_mb = models.PositiveIntegerField(null=True, blank=True, help_text="Above it, it is killed at once.")
    restart_version = models.PositiveIntegerField(
        default=0, help_text="Processes that began with an older version are replaced, one after the other."
    )
    # T11, T12, T14–T17; for a foreign endpoint these are declared values
    peek_delay_ms = models.PositiveIntegerField(default=1000)
    max_records_to_peek = models.PositiveIntegerField(null=True, blank=True)
    concurrency = models.PositiveIntegerField(default=2)
    batch_size = models.PositiveIntegerField(default=1)
    transaction_mode = models.CharField(max_length=30, choices=Mode.choices, default=Mode.SENDS_ATOMIC_WITH_RECEIVE)
    repeek_after = models.CharField(max_length=10, choices=Repeek.choices, default=Repeek.RECEIVES)
    notify = models.BooleanField(default=True)
    immediate_retries = models.PositiveIntegerField(default=5)
    delayed_retries = models.PositiveIntegerField(default=3)
    delayed_retry_step_ms = models.PositiveIntegerField(default=10_000)
    on_exhausted = models.CharField(max_length=20, choices=Exhausted.choices, default=Exhausted.ARCHIVE)
    strict_peek_range = models.BooleanField(default=False)
    audit_queue = models.CharField(max_length=200, blank=True, help_text="An address; empty: no copies are made.")
    audit_ttbr_seconds = models.PositiveIntegerField(null=True, blank=True)
    subscription_table = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="An address; empty: SubscriptionRouting in its own schema.",
    )
    purge_expired_at_start = models.BooleanField(default=False, db_default=False)
    # outbox settings (O3 to O9); the outbox table is beside the queues
    outbox = models.CharField(max_length=12, choices=Outbox.choices, default=Outbox.OFF, db_default=Outbox.OFF)
    outbox_isolation = models.CharField(
        max_length=16, choices=Isolation.choices, default=Isolation.DEFAULT, db_default=Isolation.DEFAULT
    )
    outbox_keep_seconds = models.PositiveIntegerField(default=7 * 24 * 3600, db_default=7 * 24 * 3600)
    outbox_clean_seconds = models.PositiveIntegerField(null=True, blank=True, default=60, db_default=60)
    outbox_relay_seconds = models.PositiveIntegerField(null=True, blank=True, default=60, db_default=60)
    # lease queue settings
    lock_seconds = models.PositiveIntegerField(default=60, db_default=60)
    renewed_for_seconds = models.PositiveIntegerField(null=True, blank=True)
    on_lock_expired = models.CharField(
        max_length=10, choices=LockExpired.choices, default=LockExpired.ARCHIVE, db_default=LockExpired.ARCHIVE
    )
    archive_success = models.BooleanField(default=True, db_default=True)
    version = models.PositiveIntegerField(default=1, help_text="Counts up with each change; workers report theirs.")
    changed_at = TimestampField(auto_now=True)

    objects = OfSeenAddresses["Endpoint"]()

    class Meta:
        ordering = ["name"]
        constraints = [
            # a claim takes messages of every kind, and rejects those without a handler: two endpoints would reject each
            # other's
            models.UniqueConstraint(
                fields=["kind"], condition=models.Q(kind="lease", ours=True), name="one_lease_endpoint"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_outbox(self) -> bool:
        """False in the mode none, whatever is set: the message is gone before its handler runs (O10)."""
        return self.outbox != self.Outbox.OFF and self.transaction_mode != self.Mode.NONE

    @property
    def why_no_outbox(self) -> str:
        """Why the chosen outbox is off, or "" if it is on or none was chosen."""
        return "" if self.has_outbox or self.outbox == self.Outbox.OFF else OUTBOX_OFF
