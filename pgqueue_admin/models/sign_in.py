"""Recent failed sign-ins, which throttle further ones; deleted within a day."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField


class FailedSignIn(models.Model):
    name = models.CharField(max_length=150, help_text="As it was typed; there may be nobody of that name.")
    place = models.CharField(max_length=60, blank=True, help_text="An address, or a browser that is known.")
    address = models.CharField(max_length=60, blank=True, help_text="Empty where it is not known.")
    at = TimestampField(auto_now_add=True)
    counts = models.BooleanField(default=True, editable=False, help_text="Until somebody signs in from that place.")

    class Meta:
        default_permissions = ("view",)
        verbose_name = "failed sign-in"
        indexes = [
            models.Index(fields=["place", "at"]),
            models.Index(fields=["at"]),
            models.Index(fields=["name", "at"]),
        ]
