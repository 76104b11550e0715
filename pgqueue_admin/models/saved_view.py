"""A page's address that somebody gave a name: a noun and the query behind it, never an address as such."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from pgqueue_admin.models.fields import TimestampField

LONGEST_NAME = 60
LONGEST_QUERY = 4_000


def leave_shared(collector: Any, field: Any, views: Any, using: str) -> None:
    """With a person go their own; what they shared is everybody's and stays."""
    models.CASCADE(collector, field, views.filter(is_shared=False), using)
    models.SET_NULL(collector, field, views.filter(is_shared=True), using)


class SavedView(models.Model):
    """``person``: whose it is; others see it only where it ``is_shared``. ``owner``: what they were called then, which
    somebody else may be called later.
    """

    slug = models.SlugField(max_length=80, unique=True, help_text="Stays as it is when the view is renamed.")
    name = models.CharField(max_length=LONGEST_NAME)
    page = models.CharField(max_length=20, help_text="archive, queues, failures, audit.")
    query = models.CharField(max_length=LONGEST_QUERY, blank=True, help_text="Names and values, as in an address.")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=leave_shared, null=True, related_name="+")
    owner = models.CharField(max_length=150)
    is_shared = models.BooleanField(default=False)
    created_at = TimestampField(auto_now_add=True)

    class Meta:
        ordering = ["page", "name", "id"]
        constraints = [  # own and shared ones apart: who renames a shared one is not told of its owner's others
            models.UniqueConstraint("person", "is_shared", "page", Lower("name"), name="pgqueue_savedview_name")
        ]

    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """Which view a person's list opens with, where its address asks for nothing. It goes with the view."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    page = models.CharField(max_length=20, help_text="The view's.")
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "page"], name="pgqueue_defaultview_page")]
