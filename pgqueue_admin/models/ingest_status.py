"""Why an error queue cannot be ingested, as the ingester last reported."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import processes
from pgqueue_admin.models.queue_database import database_of


def cannot_empty(where: Address | None) -> str:
    """The beginning of that report; None: the one about all error queues."""
    return f"Cannot empty {'.'.join(where) if where else 'the error queues'}:"


def trouble(queue: Address) -> str:
    """The ingester's whole report if it names this queue or all queues; else ""."""
    alias = database_of(queue).alias
    by = {"role": "source-ingester", "endpoint": alias} if alias else {"role": "ingester"}
    told = processes.heard_of().filter(**by).exclude(last_error="").values_list("last_error", flat=True)
    begins = (cannot_empty(queue), cannot_empty(None))
    return next((said for said in told if any(each in said for each in begins)), "")
