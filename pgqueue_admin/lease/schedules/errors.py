"""Why a schedule cannot be saved, in words for whoever typed it."""


class ScheduleRefused(ValueError):
    """``field``: what is wrong, as the form names it; ``part``: of a cron expression, which of the five, from 0."""

    def __init__(self, field: str, sentence: str, part: int | None = None):
        self.field, self.part = field, part
        super().__init__(sentence)
