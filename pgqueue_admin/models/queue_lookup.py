"""Resolves a queue name or address that a person or an endpoint wrote."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.names import listed
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
