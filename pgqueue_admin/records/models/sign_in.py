"""Sign-ins that failed lately: what a brake is judged by, and forgotten within a day."""

from django.db import models

from pgqueue_admin.records.models.moment import Moment


class FailedSignIn(models.Model):
    name = models.CharField(max_length=150, help_text="As it was typed; there may be nobody of that name.")
    place = models.CharField(max_length=60, blank=True, help_text="An address, or a browser that is known.")
    at = Moment(auto_now_add=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["place", "at"]), models.Index(fields=["at"])]
