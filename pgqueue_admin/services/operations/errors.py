"""Why an act was not done. Each message says first what did not happen, then why."""

from datetime import datetime

from django.utils import timezone


class OperationRefused(Exception):
    """Nothing was done."""


class OperationNotAllowed(OperationRefused):
    """The person may not."""


class EmptySelection(OperationRefused):
    """The selection holds no message that the act applies to."""


class AlreadyDecided(OperationRefused):
    """Somebody else was first: ``who`` and ``when``."""

    def __init__(self, sentence: str, who: str = "", when: datetime | None = None):
        self.who, self.when = who, when
        super().__init__(sentence)


class OutcomeUnknown(Exception):
    """It was done or not: the database went away during the act, and cannot be queried."""


def at(when: datetime | None) -> str:
    return f"at {timezone.localtime(when):%Y-%m-%d %H:%M:%S %Z}" if when else "meanwhile"
