"""Subjects of warnings for people: the queue without quotes, the exception without its namespace."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import Alert
from pgqueue_admin.models.queue_database import is_watched, queue_database
from pgqueue_admin.transport.wire.type_names import short_type


def address(alert: Alert) -> Address | None:
    """Return the queue's address; None for a warning about no queue."""
    try:
        return queue_database().dialect.parse_address(alert.queue) if alert.queue else None
    except AddressUnreadable:
        return None


def page_of(alert: Alert) -> Address | None:
    """Return the address of the queue's page; None if its schema is not watched."""
    found = address(alert)
    return found if found and is_watched(found) else None


def where(alert: Alert) -> str:
    """Return the table, with its schema unless that is the default one; without a table the subject."""
    found = address(alert)
    if found is None:
        return alert.subject
    return found.table if found.schema == queue_database().default_schema else f"{found.schema}.{found.table}"


def cause(alert: Alert) -> str:
    """Return the cause of death if the warning counts dead messages."""
    if alert.kind != "dead_message":
        return ""
    return short_cause(alert.cause) if alert.cause else "other causes"


def short_cause(cause: str) -> str:
    return short_type(cause).rpartition("+")[2]
