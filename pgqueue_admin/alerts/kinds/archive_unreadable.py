"""The archive of dead messages cannot be read: its schema is missing, the role may not, or the database is down."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if look.archive_error:
        yield Found("archive_unreadable", "archive", warnings.archive_unreadable(look.archive_error), CRITICAL)


KIND = Kind("archive_unreadable", "archive not readable", find)
