"""A mark: what a deploy or another program reports it did, and when; shown among the changes on Overview."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField

LONGEST = 200


class PostedMark(models.Model):
    """``who``: the token's name; the token may be revoked since."""

    at = models.DateTimeField(db_index=True, help_text="When it happened, as the program says.")
    who = models.CharField(max_length=60)
    text = models.CharField(max_length=LONGEST)
    link = models.CharField(max_length=500, blank=True, help_text="An address of the web.")
    posted_at = TimestampField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["who", "posted_at"])]

    def __str__(self) -> str:
        return self.text
