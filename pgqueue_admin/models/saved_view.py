"""A named view of a page: its noun and its query, never a URL."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from pgqueue_admin.models.fields import TimestampField

LONGEST_NAME = 60
LONGEST_QUERY = 4_000


def leave_shared(collector: Any, field: Any, views: Any, using: str) -> None:
    """Delete a person's own views with the person; keep shared ones, which belong to everybody."""
    models.CASCADE(collector, field, views.filter(is_shared=False), using)
    models.SET_NULL(collector, field, views.filter(is_shared=True), using)


class SavedView(models.Model):
    """``person``: the owner; others see the view only if ``is_shared``. ``owner``: the owner's name at that time, which
    another person may get later."""

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
        constraints = [  # shared apart from own: renaming a shared view must not reveal its owner's other names
            models.UniqueConstraint("person", "is_shared", "page", Lower("name"), name="pgqueue_savedview_name")
        ]

    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """The view that a person's list opens with if the URL has no query. Deleted with the view."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    page = models.CharField(max_length=20, help_text="The view's.")
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "page"], name="pgqueue_defaultview_page")]
