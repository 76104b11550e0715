"""Resolves a queue name or address that a person or an endpoint wrote, and finds the rows of many addresses."""

from collections.abc import Collection

from django.db.models import QuerySet

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.models.queue import Queue
from pgqueue_admin.models.queue_database import queue_database, queues_in


class AmbiguousQueueName(AddressUnreadable):
    """A table's name alone does not say which."""

    def __init__(self, name: str, found: list[Address]):
        schemas = listed([each.schema for each in found])
        super().__init__(f"{name} is in {schemas}: write {found[0].schema}.{found[0].table}.")


def canonical(name: str) -> str:
    """Its address in full. A bare table name is enough while only one schema has it, whatever it is made of.

    A whole address is never taken for a table that somebody named like one. Raises AddressUnreadable.
    """
    dialect = queue_database().dialect
    address = dialect.parse_address(name, queue_database().default_schema)
    if dialect.canonical(address) == name:
        return name
    named = [Address(*row) for row in queues_in("").filter(table=name).values_list("schema", "table")]
    if len(named) > 1:
        raise AmbiguousQueueName(name, named)
    return dialect.canonical(named[0] if named else address)


def near(addresses: Collection[Address]) -> QuerySet[Queue]:
    """Rows of these, also of tables that are gone, and of tables with one's schema and another's name: compare.

    Ten thousand pairs would be planned for longer than all of these rows take to read.
    """
    return Queue.objects.filter(
        schema__in={each.schema for each in addresses}, table__in={each.table for each in addresses}
    )
