"""What an endpoint writes to besides: error queue, audit queue and subscription table, judged by name alone."""

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint

_OWN = {
    "error_queue": "What failed would come straight back to the endpoint's own queue: name another.",
    "audit_queue": "Copies in the endpoint's own queue would be received and copied again, without end: name another.",
    "subscription_table": "The endpoint's own queue holds messages and no subscriptions: name another table.",
}


def faults(row: Endpoint) -> dict[str, str]:
    found = {field: fault for field in _OWN if (fault := _address(row, field))}
    if row.on_exhausted == Endpoint.Exhausted.ERROR_QUEUE and not row.error_queue:
        found["error_queue"] = "Name the error queue that exhausted messages are sent to."
    if row.audit_ttbr_seconds is not None and not row.audit_queue:
        found["audit_queue"] = "Name the queue whose copies are to expire, or say nothing of how long they live."
    return found


def _address(row: Endpoint, field: str) -> str | None:
    text, dialect = getattr(row, field), postgresql()
    if not text:
        return None
    try:
        address = dialect.parse_address(text, row.schema)
    except AddressUnreadable as error:
        return f"{error}."
    if row.ours and address == (row.schema, row.table):
        return _OWN[field]
    size, limit = len(address.table.encode()), dialect.max_table_bytes
    if size > limit:
        kind = "queue" if field.endswith("queue") else "table"
        return f"The name of a {kind} may have {limit} bytes; {address.table} has {size}."
    return None
