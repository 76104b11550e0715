"""The archive as Django sees it: an engine table in ``queues``, read and never migrated."""

from django.db import models


class ArchivedMessage(models.Model):
    """A row of ``messages.message_archive`` without its body. ``archive.messages`` explains the columns."""

    class State(models.TextChoices):
        DEAD = "dead", "dead"
        RETRIED = "retried", "retried"
        SUCCEEDED = "succeeded", "succeeded"
        DEAD_AGAIN = "dead_again", "dead again"
        DISCARDED = "discarded", "discarded"

    id = models.IntegerField(primary_key=True)
    seq = models.BigIntegerField()
    kind = models.TextField(choices=[(each, each) for each in ("transport", "control", "lease")])
    state = models.TextField(choices=State.choices)
    result = models.TextField()
    queue = models.TextField(null=True)  # noqa: DJ001 - the engine's column is nullable
    message_id = models.TextField("message id", null=True)  # noqa: DJ001
    message_type = models.TextField("type", null=True)  # noqa: DJ001
    headers = models.TextField(null=True)  # noqa: DJ001
    row_id = models.UUIDField(null=True)
    exception_type = models.TextField("exception", null=True)  # noqa: DJ001
    exception_message = models.TextField(null=True)  # noqa: DJ001
    stack_trace = models.TextField(null=True)  # noqa: DJ001
    failed_queue = models.TextField(null=True)  # noqa: DJ001
    ingested_from = models.TextField(null=True)  # noqa: DJ001
    details = models.TextField(null=True)  # noqa: DJ001
    retry_blocked_reason = models.TextField("why it cannot be retried", null=True)  # noqa: DJ001
    endpoint = models.TextField(null=True)  # noqa: DJ001
    machine = models.TextField(null=True)  # noqa: DJ001
    handled_by = models.CharField(max_length=50)
    attempts = models.IntegerField(null=True)
    sent_at = models.DateTimeField("sent", null=True)
    died_at = models.DateTimeField("died or finished")
    resolved_by = models.TextField("decided by", null=True)  # noqa: DJ001
    resolved_at = models.DateTimeField("decided", null=True)
    ended_at = models.DateTimeField("ended", null=True)
    operation = models.BigIntegerField(null=True)

    class Meta:
        managed = False
        db_table = '"messages"."message_archive"'
        default_permissions = ("view",)
        ordering = ["-died_at", "-seq"]
        verbose_name = "archived message"

    def __str__(self) -> str:
        return f"{self.id}: {self.message_type or self.message_id or self.kind}"
