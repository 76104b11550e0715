"""A timestamp field filled by the database's clock, not by the host that writes."""

from datetime import datetime

from django.db import models

from pgqueue_admin.models import database_clock


class TimestampField(models.DateTimeField):
    """``DateTimeField`` with ``auto_now_add`` or ``auto_now``, by ``database_clock``."""

    def pre_save(self, model_instance: models.Model, add: bool) -> datetime | None:
        if not (self.auto_now or (self.auto_now_add and add)):
            return super().pre_save(model_instance, add)
        value = database_clock.now()
        setattr(model_instance, self.attname, value)
        return value
