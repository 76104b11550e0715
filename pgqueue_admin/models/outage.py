"""Describes outages of the console's own database, and logs each cause once."""

import django.db

from pgqueue_admin.dialects.errors import ReadOnly

NO_WRITES = "25006"  # a standby, or default_transaction_read_only


def takes_no_writes(error: BaseException) -> bool:
    return isinstance(error, ReadOnly) or _sqlstate(error) == NO_WRITES


def describe(error: BaseException) -> str:
    """The predicate of a sentence that begins with "The console's database"."""
    if takes_no_writes(error):
        return "takes no writes now"
    refuses = isinstance(error, django.db.Error) and not isinstance(
        error, django.db.OperationalError | django.db.InterfaceError
    )
    return "refuses what was asked of it" if refuses else "does not answer"


class DatabaseOutage:
    """Reports each cause once per outage: the first cause met is seldom the one that lasts."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def is_news(self, error: BaseException) -> bool:
        cause = (describe(error), _sqlstate(error))
        is_news, self._told = cause not in self._told, self._told | {cause}
        return is_news

    def is_over(self) -> bool:
        """End the outage; return whether there was one."""
        was_told, self._told = bool(self._told), set()
        return was_told


def _sqlstate(error: BaseException) -> str:
    """The driver's SQLSTATE: Django's errors have the driver's error as their cause."""
    for each in (error, error.__cause__):
        if state := getattr(each, "sqlstate", None):
            return str(state)
    return ""
