"""Errors of lease messages and of schedules."""

from pgqueue_admin.transport.errors import QueueUnfit


class LeaseQueueMissing(QueueUnfit):
    """The tables of the lease queue are not there, or older than this program: run manage.py engine_schema."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__), str(self.__doc__))


class MessageRefused(ValueError):
    """It cannot be published: it is no JSON, or none that jsonb takes."""


class MessageUnreadable(ValueError):
    """It is JSON to the database, and not to Python: too deep, or a number of too many digits."""


class Rejected(Exception):
    """Raised by a handler: the message can never be handled. It ends as *rejected*, without a retry."""


class LockLost(Exception):
    """The lock was over before the handler was."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class ScheduleRefused(ValueError):
    """A schedule cannot be saved. ``field``: the invalid form field; ``part``: the invalid part of a cron expression, 0
    to 4."""

    def __init__(self, field: str, sentence: str, part: int | None = None):
        self.field, self.part = field, part
        super().__init__(sentence)
