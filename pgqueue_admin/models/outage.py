"""Describes outages of the console's own database, and tells each cause once."""

import django.db

from pgqueue_admin.dialects.errors import ReadOnly

NO_WRITES = "25006"  # a standby, or read-only as somebody has set it


def takes_no_writes(error: BaseException) -> bool:
    return isinstance(error, ReadOnly) or _sqlstate(error) == NO_WRITES


def describe(error: BaseException) -> str:
    """What the database does: goes on after "The console's database"."""
    if takes_no_writes(error):
        return "takes no writes now"
    refuses = isinstance(error, django.db.Error) and not isinstance(
        error, django.db.OperationalError | django.db.InterfaceError
    )
    return "refuses what was asked of it" if refuses else "does not answer"


class DatabaseOutage:
    """Each cause is told once, until the outage is over: what is met first is seldom why it lasts."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def is_news(self, error: BaseException) -> bool:
        cause = (describe(error), _sqlstate(error))
        is_news, self._told = cause not in self._told, self._told | {cause}
        return is_news

    def is_over(self) -> bool:
        """Whether there was one, until now."""
        was_told, self._told = bool(self._told), set()
        return was_told


def _sqlstate(error: BaseException) -> str:
    """Django's errors have the driver's as their cause."""
    for each in (error, error.__cause__):
        if state := getattr(each, "sqlstate", None):
            return str(state)
    return ""
