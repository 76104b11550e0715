"""Audit of acts: entries are never edited or deleted. An intent is the entry of an unfinished act."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField
from pgqueue_admin.models.scoped_managers import AboutSeenQueues


class AuditEntryManager(AboutSeenQueues["AuditEntry"]):
    """Defers bodies: a list of entries must not read them all."""

    def get_queryset(self) -> models.QuerySet["AuditEntry"]:
        return super().get_queryset().defer("bodies")


class AuditEntry(models.Model):
    at = TimestampField(auto_now_add=True)
    who = models.CharField(max_length=150)
    verb = models.CharField(max_length=30)  # formatting.audit_verbs lists them all
    # message, operation, endpoint, queue, alert, mail, history, host, person, schedule, outbox, failure,
    # token, subscription, audit, archive, view, masking, scope, retry rule, lease rule
    noun = models.CharField(max_length=30)
    subject = models.CharField(max_length=400)  # an endpoint's name, a queue's address, a number
    count = models.BigIntegerField(default=1)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    bodies = models.JSONField(null=True, help_text="Of an edited message, before and after, where that was changed.")
    reason = models.TextField(blank=True)
    origin = models.CharField(max_length=20)  # console, admin, command, relay, alerter; plan: a stage of a retry plan
    operation_id = models.BigIntegerField(null=True)

    objects = AuditEntryManager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["noun", "subject", "-id"])]
        verbose_name_plural = "audit entries"


class AuditIntent(models.Model):
    """The audit entry of an act, stored before the act begins. The process that learns the outcome, this one or a later
    one, turns it into an entry, or drops it if nothing arrived."""

    at = TimestampField(auto_now_add=True)
    crossing = models.BigIntegerField(db_index=True)
    entry = models.JSONField(help_text="Columns of an audit entry, by their names.")
