"""Resolves a queue name or address written by a person or an endpoint, and finds the rows of many addresses."""

from collections.abc import Collection

from django.db.models import QuerySet

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.models.queue import Queue
from pgqueue_admin.models.queue_database import queue_database, queues_in


class AmbiguousQueueName(AddressUnreadable):
    """Several schemas have a table of this name."""

    def __init__(self, name: str, found: list[Address]):
        schemas = listed([each.schema for each in found])
        super().__init__(f"{name} is in {schemas}: write {found[0].schema}.{found[0].table}.")


def canonical(name: str) -> str:
    """The full address. A bare table name suffices while only one schema has it, whatever characters it has.

    A full address is never read as a table of that name. Raises AddressUnreadable.
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
    """A superset of these queues' rows, gone ones included: also one's schema with another's table. Compare them.

    Planning ten thousand pairs would take longer than reading all of these rows.
    """
    return Queue.objects.filter(
        schema__in={each.schema for each in addresses}, table__in={each.table for each in addresses}
    )
