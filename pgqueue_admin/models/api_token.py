"""Tokens with which programs authenticate. Only a digest is kept, so nobody can read a token again."""

from datetime import datetime

from django.db import models
from django.db.models.functions import Lower

from pgqueue_admin.models.fields import TimestampField

RIGHTS = {"metrics": "read /metrics from elsewhere", "marks": "post marks to /api/marks/"}


class ApiToken(models.Model):
    """Valid until it expires or is revoked. Revoked tokens are kept, because marks and the audit name them."""

    name = models.CharField(max_length=60)
    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="SHA-256 in hex.")
    rights = models.JSONField(default=list, help_text="Any of metrics, marks.")
    created_by = models.CharField(max_length=150)
    created_at = TimestampField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="To the minute.")
    revoked_by = models.CharField(max_length=150, blank=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        verbose_name = "API token"
        constraints = [models.UniqueConstraint(Lower("name"), name="pgqueue_apitoken_name")]

    def __str__(self) -> str:
        return self.name

    def is_good(self, now: datetime) -> bool:
        return self.standing(now) == "good"

    def standing(self, now: datetime) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now else "good"
