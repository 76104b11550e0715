"""Why an act was not done. What did not happen comes first, then why."""

from datetime import datetime

from django.utils import timezone


class OperationRefused(Exception):
    """Nothing was done."""


class OperationNotAllowed(OperationRefused):
    """The person may not."""


class EmptySelection(OperationRefused):
    """The choice holds no message that the act could be done to."""


class AlreadyDecided(OperationRefused):
    """Somebody was quicker; ``who`` and ``when`` say who."""

    def __init__(self, sentence: str, who: str = "", when: datetime | None = None):
        self.who, self.when = who, when
        super().__init__(sentence)


class OutcomeUnknown(Exception):
    """It was done or it was not: the database went away in between, and cannot be asked."""


def at(when: datetime | None) -> str:
    return f"at {timezone.localtime(when):%Y-%m-%d %H:%M:%S %Z}" if when else "meanwhile"
