"""A staged retry: try a few, watch, send some slowly, then the rest; and when it stops, holds and waits."""

from dataclasses import dataclass

from django.db import models

from pgqueue_admin.models.operation import Operation


@dataclass(frozen=True, slots=True)
class Stage:
    """First and last position in the frozen set, and messages sent per second; None: all at once."""

    name: str  # try, some, rest
    first: int
    last: int
    rate: float | None

    @property
    def count(self) -> int:
        return self.last - self.first + 1


class RetryPlan(models.Model):
    """The plan and its progress. The outcome of each message is in its item, not in this row."""

    operation = models.OneToOneField(Operation, on_delete=models.CASCADE, primary_key=True, related_name="plan")
    try_first = models.PositiveIntegerField(default=5, help_text="Sent at once, and watched. 0: no trial.")
    watch_seconds = models.PositiveIntegerField(default=60)
    then_some = models.PositiveIntegerField(default=50)
    some_rate = models.FloatField(default=5.0, help_text="Messages a second.")
    rest_rate = models.FloatField(default=20.0, help_text="Messages a second.")
    give_up_seconds = models.PositiveIntegerField(default=1800, help_text="After the last was sent.")
    stop_dead = models.PositiveIntegerField(default=5, help_text="Stops when so many of any stop_of die again.")
    stop_of = models.PositiveIntegerField(default=50)
    hold_above = models.PositiveIntegerField(null=True, help_text="Ready in a target. Null: never holds.")
    waits = models.BooleanField(default=True, help_text="To begin, until somebody receives.")

    next_at = models.DateTimeField(null=True, help_text="No message is sent before: taken before each chunk.")
    look_at = models.DateTimeField(null=True, help_text="When it is looked at next what became of what was sent.")
    looking = models.BooleanField(default=False, help_text="A look has begun and has not ended: nothing is sent.")
    judged_from = models.PositiveIntegerField(default=0, help_text="Deaths up to this position stop it no more.")
    held = models.BooleanField(default=False)
    says = models.TextField(blank=True, help_text="Why it waits, watches, holds or has stopped, as a sentence.")
    dead_now = models.PositiveIntegerField(default=0, help_text="The most of any stop_of that have died again.")
    ready_now = models.BigIntegerField(null=True, help_text="The most ready in a target; null: not known.")
    decided_by = models.CharField(max_length=150, blank=True, help_text="Who paused it.")
    decided_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"plan of operation {self.pk}"

    @property
    def stages(self) -> list[Stage]:
        """The stages that have messages."""
        last_tried = min(self.try_first, self.operation.count)
        last_of_some = min(last_tried + self.then_some, self.operation.count)
        parts = [
            Stage("try", 1, last_tried, None),
            Stage("some", last_tried + 1, last_of_some, self.some_rate),
            Stage("rest", last_of_some + 1, self.operation.count, self.rest_rate),
        ]
        return [each for each in parts if each.count > 0]

    def stage_of(self, position: int) -> Stage:
        return next(each for each in self.stages if each.first <= position <= each.last)

    @property
    def tried(self) -> int:
        """The last position of the trial."""
        return min(self.try_first, self.operation.count)
