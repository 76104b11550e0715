"""Trials of dead messages: handlers run in transactions that are always rolled back. Outcomes are kept."""

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now

from pgqueue_admin.models.fields import TimestampField

KEPT = timedelta(days=7)


class Trial(models.Model):
    """One request. Items not tried by ``until`` are never tried, and their outcome stays unknown."""

    who = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    origin = models.CharField(max_length=20)
    selection = models.TextField(blank=True, help_text="The search that chose the messages, or empty for chosen ones.")
    operation_id = models.BigIntegerField(null=True, db_index=True, help_text="The retry whose set was tried.")
    of = models.PositiveIntegerField(help_text="How many there were to choose from.")
    created_at = TimestampField(auto_now_add=True)
    until = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"trial {self.pk}"


class TrialItems(models.QuerySet["TrialItem"]):
    def to_try(self) -> "TrialItems":
        """Items that wait or are being tried, and are not too old, in order."""
        return self.filter(outcome="", trial__until__gt=Now()).order_by("trial", "position")


class TrialItem(models.Model):
    """One message of a trial. Saved before and after its handlers run: if begun without outcome, its process ended."""

    class Outcome(models.TextChoices):
        WAITING = ""
        SUCCEEDS = "succeeds"
        RAISES = "raises"
        REFUSED = "refused"  # it cannot be tried
        LEFT = "left"  # the handler ended the transaction
        UNKNOWN = "unknown"

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    archive_id = models.BigIntegerField()
    endpoint = models.CharField(max_length=200, blank=True)
    message_type = models.TextField(blank=True)
    died_of = models.TextField(blank=True, help_text="The exception's type.")
    outcome = models.CharField(max_length=10, choices=Outcome.choices, blank=True)
    why = models.TextField(blank=True, help_text="What was raised, or why it is not known.")
    raised = models.TextField(blank=True, help_text="The exception's type.")
    same_cause = models.BooleanField(null=True)
    sends = models.PositiveIntegerField(default=0, help_text="Messages that were caught.")
    began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = TrialItems.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["trial", "position"], name="pgqueue_trialitem_place")]

    def __str__(self) -> str:
        return f"message {self.archive_id} of {self.trial_id}"
