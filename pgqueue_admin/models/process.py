"""A process that reported: supervisor, endpoint child, sampler, alerter, ingester, expirer, Celery."""

from django.db import models


class Process(models.Model):
    """Identified by host, pid and start ticks (/proc/<pid>/stat field 22): a bare pid may be reused."""

    class State(models.TextChoices):
        STARTING = "starting"
        RUNNING = "running"
        PAUSED = "paused"
        DRAINING = "draining"
        BACK_OFF = "back-off"
        STOPPED = "stopped"
        CRASHED = "crashed"
        LOST = "lost"

    # supervisor, endpoint, sampler, source-sampler (endpoint: the alias of its database), alerter, ingester, expirer,
    # history, trial, outbox-keeper, celery-worker, celery-beat
    role = models.CharField(max_length=20)
    endpoint = models.CharField(max_length=200, blank=True)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    start_ticks = models.BigIntegerField()
    state = models.CharField(max_length=20, choices=State.choices, default=State.STARTING)
    code_version = models.CharField(max_length=64, blank=True)
    started_version = models.PositiveIntegerField(default=0, help_text="Version of the settings it began with.")
    settings_version = models.PositiveIntegerField(default=0)
    settings_at = models.DateTimeField(null=True, help_text="When it took that version.")
    log = models.CharField(max_length=400, blank=True, help_text="Its log file, on its host.")
    slots = models.PositiveIntegerField(default=0)
    busy = models.PositiveIntegerField(default=0)
    busy_share = models.FloatField(null=True, help_text="Of the last minute: slot time with a message in hand, 0 to 1.")
    received = models.BigIntegerField(default=0)
    received_at = models.DateTimeField(null=True, help_text="When it last received a message.")
    handled = models.BigIntegerField(default=0)
    handled_per_second = models.FloatField(null=True)
    critical_p50_ms = models.FloatField(null=True)  # over the last minute, or its last 2,000: from sending to handled
    critical_p95_ms = models.FloatField(null=True)
    processing_p95_ms = models.FloatField(null=True)
    failed = models.BigIntegerField(default=0)
    retried = models.BigIntegerField(default=0)
    expired = models.BigIntegerField(default=0)  # T3: expired messages are counted, never dropped silently
    last_expired_at = models.DateTimeField(null=True)
    memory_bytes = models.BigIntegerField(default=0)
    last_error = models.TextField(blank=True)
    last_error_at = models.DateTimeField(null=True, help_text="When that was. Null: it was not told.")
    # Apart from last_error, which everybody sees: a log line may hold what only some may read. db_default: during an
    # upgrade, supervisors of the previous version insert rows without this column.
    last_line = models.TextField(blank=True, default="", db_default="", help_text="Of its log, when it ended.")
    breakers = models.JSONField(default=list, blank=True, help_text="Circuit breakers that are open.")
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    dismissed_at = models.DateTimeField(null=True, help_text="When a person said that its host is gone for good.")
    exit_code = models.IntegerField(null=True)
    drain_until = models.DateTimeField(null=True, help_text="When it is killed, if it has not ended by itself.")
    next_start_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "pid", "start_ticks"], name="process_identity")]
        indexes = [models.Index(fields=["ended_at", "role"])]

    @property
    def label(self) -> str:
        """Name for people: an endpoint's name, else the role."""
        if self.role.startswith("source-"):
            return f"{self.role.removeprefix('source-')} of {self.endpoint}"
        return self.endpoint or self.role
