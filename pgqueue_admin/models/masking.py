"""Which parts of messages are masked, and who may see them unmasked for a while."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower


class MaskingRule(models.Model):
    """Validated by ``services.masking.rule_changes`` before it is saved."""

    class Kind(models.TextChoices):
        HEADER = "header", "Header"
        PATH = "path", "JSON path"
        REGEX = "regex", "Regular expression"

    name = models.CharField(max_length=60, help_text="Stands in the bar.")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    pattern = models.CharField(max_length=500)
    types = models.JSONField(default=list, blank=True, help_text="Patterns of message types; none: every type.")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(Lower("name"), name="pgqueue_maskingrule_name")]

    def __str__(self) -> str:
        return self.name


class MaskingReveal(models.Model):
    """While it lasts, this person sees masked parts. One row per person; the audit keeps earlier ones."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    began_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.TextField()
    opened = models.JSONField(default=list, help_text="Messages that were opened meanwhile, each of which is audited.")

    def __str__(self) -> str:
        return f"{self.person} until {self.ends_at}"
