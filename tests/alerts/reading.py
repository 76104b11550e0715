"""A look into the archive, as the alerter has it."""

from collections.abc import Callable

from django.db import transaction

from pgqueue_admin.alerts import archive_reader
from pgqueue_admin.alerts.archive_reader import ArchiveReader, Reading
from pgqueue_admin.records.source import source

Die = Callable[..., None]


def read() -> Reading:
    with transaction.atomic(), archive_reader.cursor() as cursor:
        return ArchiveReader().read(source(), cursor)


def died(reading: Reading) -> dict[tuple[str, str], int]:
    return {(each.queue, each.cause): each.count for each in reading.deaths}
