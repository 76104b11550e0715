"""Django finds the models here; they live in records."""

from pgqueue_admin.records.models import *  # noqa: F403
