"""A console that keeps history of the archive has said nothing for a week: the archive is pruned without it."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind, sees_archive
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.archive.pruning import SILENT
from pgqueue_admin.wording import history


def find(look: Look) -> Iterator[Found]:
    for each in look.silent:
        age = (look.now - each.said_at).total_seconds()
        said = history.reader_silent(age, SILENT.total_seconds(), each.name, each.reader)
        yield Found("reader_silent", "archive", said, cause=each.reader, since=each.said_at)


KIND = Kind("reader_silent", "a console is silent", find, can_tell=sees_archive)
