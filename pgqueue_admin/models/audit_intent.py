"""What the audit will say of an act into another database, written down before it sets out."""

from django.db import models

from pgqueue_admin.models.fields import TimestampField


class AuditIntent(models.Model):
    """Whoever finds out what came of the act, the process that did it or a later one, makes an entry of it, or drops
    it where nothing arrived."""

    at = TimestampField(auto_now_add=True)
    crossing = models.BigIntegerField(db_index=True)
    entry = models.JSONField(help_text="Columns of an audit entry, by their names.")
