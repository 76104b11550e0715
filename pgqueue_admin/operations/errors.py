"""Why an act was not done. What did not happen comes first, then why."""

from datetime import datetime

from django.utils import timezone


class Refused(Exception):
    """Nothing was done."""


class NotAllowed(Refused):
    """The person may not."""


class NothingChosen(Refused):
    """The choice holds no message that the act could be done to."""


class AlreadyDecided(Refused):
    """Somebody was quicker; ``who`` and ``when`` say who."""

    def __init__(self, sentence: str, who: str = "", when: datetime | None = None):
        self.who, self.when = who, when
        super().__init__(sentence)


class Unknown(Exception):
    """It was done or it was not: the database went away in between, and cannot be asked."""


def at(when: datetime | None) -> str:
    return f"at {timezone.localtime(when):%Y-%m-%d %H:%M:%S %Z}" if when else "meanwhile"
