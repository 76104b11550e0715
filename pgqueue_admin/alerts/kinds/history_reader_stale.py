"""A console that keeps history of the archive has not reported for a week: the archive is pruned without it.

First step: Check that its Celery worker runs; if that console is gone, run the delete that the warning shows.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind, sees_archive
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.archive.retention import SILENT
from pgqueue_admin.formatting import history


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for each in look.silent:
        age = (look.now - each.said_at).total_seconds()
        said = history.history_reader_stale(age, SILENT.total_seconds(), each.name, each.reader)
        yield Finding("history_reader_stale", "archive", said, cause=each.reader, since=each.said_at)


KIND = AlertKind("history_reader_stale", "a console is silent", find, can_tell=sees_archive)
