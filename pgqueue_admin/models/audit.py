"""Who did what: entries are never edited or deleted. An intent is what will be said of an act on queues."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import AboutSeenQueues


class AuditEntryManager(AboutSeenQueues["AuditEntry"]):
    """Without bodies, until one is asked for: a list of entries must not read them all."""

    def get_queryset(self) -> models.QuerySet["AuditEntry"]:
        return super().get_queryset().defer("bodies")


class AuditEntry(models.Model):
    at = TimestampField(auto_now_add=True)
    who = models.CharField(max_length=150)
    verb = models.CharField(max_length=30)  # wording.acts has them all
    # message, operation, endpoint, queue, alert, mail, history, host, person, schedule, outbox, failure,
    # token, subscription, audit, archive, view, masking, scope, retry rule, lease rule
    noun = models.CharField(max_length=30)
    subject = models.CharField(max_length=400)  # an endpoint's name, a queue's address, a number
    count = models.BigIntegerField(default=1)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    bodies = models.JSONField(null=True, help_text="Of an edited message, before and after, where that was changed.")
    reason = models.TextField(blank=True)
    origin = models.CharField(max_length=20)  # console, admin, command, relay, alerter; plan: a staged retry's own
    operation_id = models.BigIntegerField(null=True)

    objects = AuditEntryManager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["noun", "subject", "-id"])]
        verbose_name_plural = "audit entries"


class AuditIntent(models.Model):
    """Written down before the act sets out. Whoever finds out what came of it, the process that did it or a later one,
    makes an entry of it, or drops it where nothing arrived."""

    at = TimestampField(auto_now_add=True)
    crossing = models.BigIntegerField(db_index=True)
    entry = models.JSONField(help_text="Columns of an audit entry, by their names.")
