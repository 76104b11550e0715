"""Why an error queue that is to be emptied into the archive is not: as the ingester last said."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import processes


def cannot_empty(where: Address | None) -> str:
    """How that begins; None: of all of them."""
    return f"Cannot empty {'.'.join(where) if where else 'the error queues'}:"


def trouble(queue: Address) -> str:
    """All that it said, if this queue is among it; else empty."""
    told = processes.heard_of().filter(role="ingester").exclude(last_error="").values_list("last_error", flat=True)
    begins = (cannot_empty(queue), cannot_empty(None))
    return next((said for said in told if any(each in said for each in begins)), "")
