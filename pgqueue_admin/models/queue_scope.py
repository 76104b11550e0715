"""Which queues members of a group see: patterns. A person without any sees all."""

from django.db import models

LONGEST = 300


class QueueScope(models.Model):
    """Validated by ``services.queue_scopes`` before it is saved. A group with scopes cannot be deleted: without them
    its members would see every queue."""

    group = models.ForeignKey("auth.Group", on_delete=models.PROTECT, related_name="queue_scopes")
    pattern = models.CharField(max_length=LONGEST, help_text="schema.queue, with * for any text.")
    may_act = models.BooleanField(default=False, help_text="Also acts, as far as the person has the right to them.")

    class Meta:
        ordering = ["group__name", "pattern"]
        constraints = [models.UniqueConstraint(fields=["group", "pattern"], name="pgqueue_queuescope_pattern")]

    def __str__(self) -> str:
        return f"{self.group}: {self.pattern}"
