"""The archive of dead messages cannot be read: its schema is missing, the role has no right, or the database is down.

First step: Run `manage.py engine_schema` if the schema is missing; else bring the database back.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    if look.archive_error:
        yield Finding("archive_unreadable", "archive", warnings.archive_unreadable(look.archive_error), CRITICAL)


KIND = AlertKind("archive_unreadable", "archive not readable", find)
