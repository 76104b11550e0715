"""Schedules as Django sees them: an engine table in ``queues``, read and never migrated."""

from django.db import models


class Schedule(models.Model):
    """A row of ``messages.schedule``: what is sent on schedule, and when (docs/reference/schedules.md)."""

    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    kind = models.TextField(choices=[(each, each) for each in ("lease", "transport")])
    queue_schema = models.TextField(null=True)  # noqa: DJ001 - the engine's column is nullable
    queue_table = models.TextField("queue", null=True)  # noqa: DJ001
    message_type = models.TextField("type")
    message = models.TextField()
    expression = models.TextField("when")
    zone = models.TextField()
    missed = models.TextField("missed runs", choices=[("skip", "skip"), ("catch_up", "catch up once")])
    planned_until = models.DateTimeField()
    created_at = models.DateTimeField("made")
    created_by = models.TextField("made by")
    paused_at = models.DateTimeField("paused", null=True)
    paused_by = models.TextField(null=True)  # noqa: DJ001
    error = models.TextField("why it was not sent", null=True)  # noqa: DJ001
    error_at = models.DateTimeField("not sent since", null=True)

    class Meta:
        managed = False
        db_table = '"messages"."schedule"'
        default_permissions = ("view",)
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
