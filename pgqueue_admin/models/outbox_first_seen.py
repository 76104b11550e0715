"""When pending outbox records were first seen, for tables without that time, by the clock of this database."""

from collections.abc import Collection
from datetime import datetime

from django.db import models
from django.db.models import QuerySet

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import database_clock

MOST = 10_000  # records of a table; further ones are tracked once some of these are gone
LONGEST = 200  # characters of a record's id, as in the original's column


class OutboxFirstSeen(models.Model):
    """A pending record. The row outlives the process that saw it, and is deleted when the record is dispatched or gone.

    ``database``: as in ``ForeignOutbox``; a table of the same name in another database is another table.
    """

    database = models.CharField(max_length=100)
    schema = models.CharField(max_length=63)
    table = models.CharField(max_length=63)
    record = models.CharField(max_length=LONGEST)
    first_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["database", "schema", "table", "record"], name="outbox_record_seen_once")
        ]

    def __str__(self) -> str:
        return f"{self.record} of {self.schema}.{self.table}"


def since(database: str, table: Address, records: Collection[str] | None = None) -> dict[str, datetime]:
    """When each record was first seen; None: all known records of the table."""
    rows = _of(database, table)
    found = rows if records is None else rows.filter(record__in=records)
    return dict(found.values_list("record", "first_seen_at"))


def oldest(database: str, table: Address, most: int) -> dict[str, datetime]:
    """The first ``most`` records by time."""
    rows = _of(database, table).order_by("first_seen_at", "record")
    return dict(rows.values_list("record", "first_seen_at")[:most])


def note(database: str, table: Address, records: Collection[str]) -> dict[str, datetime]:
    """As ``since``, after recording new records as seen now, up to MOST per table."""
    known = since(database, table)
    room, now = MOST - len(known), database_clock.now()
    new = [each for each in dict.fromkeys(records) if each not in known and len(each) <= LONGEST][: max(0, room)]
    if new:
        of = {"database": database, "schema": table.schema, "table": table.table, "first_seen_at": now}
        rows = [OutboxFirstSeen(**of, record=each) for each in new]
        OutboxFirstSeen.objects.bulk_create(rows, batch_size=1_000, ignore_conflicts=True)
        known = since(database, table)  # another process may have inserted first
    return {each: known[each] for each in records if each in known}


def forget(database: str, table: Address, records: Collection[str]) -> None:
    if records:
        _of(database, table).filter(record__in=records).delete()


def tables(database: str) -> set[Address]:
    """Tables with tracked records."""
    rows = OutboxFirstSeen.objects.filter(database=database).order_by()
    return {Address(*each) for each in rows.values_list("schema", "table").distinct()}


def forget_all(database: str, table: Address) -> None:
    _of(database, table).delete()


def forget_other_databases(databases: Collection[str]) -> None:
    """Delete records of databases that are no longer read."""
    OutboxFirstSeen.objects.exclude(database__in=databases).delete()


def _of(database: str, table: Address) -> QuerySet[OutboxFirstSeen]:
    return OutboxFirstSeen.objects.filter(database=database, schema=table.schema, table=table.table)
