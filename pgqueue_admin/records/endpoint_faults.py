"""What an endpoint's settings may be: every fault is told at once, field by field."""

from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.models import Endpoint

MOST_PROCESSES = 64
MOST_CONCURRENCY = 64
LONGEST_PEEK_DELAY_MS = 24 * 3600 * 1000
LONGEST_DRAIN_SECONDS = 3600
MOST_MEMORY_MB = 1_000_000
LONGEST_RETRY_STEP_MS = 24 * 3600 * 1000  # a message whose last delayed retry is older than a day gets no other
PEEK_RANGE_MS = (100, 10_000)  # T14: the recommended range; outside it only strict_peek_range refuses
_WHOLE_NUMBERS = {
    "desired_processes": ("Processes", 0, MOST_PROCESSES),
    "memory_mb": ("Memory limit in MB", 1, MOST_MEMORY_MB),
    "memory_kill_mb": ("Memory at which it is killed, in MB,", 1, MOST_MEMORY_MB),
    "drain_seconds": ("Drain", 0, LONGEST_DRAIN_SECONDS),
    "peek_delay_ms": ("Peek delay in ms", 1, LONGEST_PEEK_DELAY_MS),
    "max_records_to_peek": ("Peek batch", 1, 1_000_000),
    "concurrency": ("Concurrency", 1, MOST_CONCURRENCY),
    "immediate_retries": ("Immediate retries", 0, 1000),
    "delayed_retries": ("Delayed retries", 0, 1000),
    "delayed_retry_step_ms": ("Step of delayed retries in ms", 0, LONGEST_RETRY_STEP_MS),
}
_MAY_BE_NONE = frozenset({"max_records_to_peek", "memory_mb", "memory_kill_mb"})


def faults(row: Endpoint) -> dict[str, str]:
    """A sentence for each field that cannot stay as it is."""
    found = {field: fault for field in _WHOLE_NUMBERS if (fault := _number(row, field))}
    return found | (_strict_range(row) if "peek_delay_ms" not in found else {}) | _memory(row) | _exhausted(row)


def _number(row: Endpoint, field: str) -> str | None:
    label, least, most = _WHOLE_NUMBERS[field]
    value = getattr(row, field)
    if value is None and field in _MAY_BE_NONE:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return None
    return f"{label} is a whole number from {least:,} to {most:,}; {value!r} is not."


def _memory(row: Endpoint) -> dict[str, str]:
    drain, kill = row.memory_mb, row.memory_kill_mb
    if not isinstance(drain, int) or not isinstance(kill, int) or kill > drain:
        return {}
    return {"memory_kill_mb": f"It is killed above {kill:,} MB, so it never drains at {drain:,} MB: name a larger one."}


def _strict_range(row: Endpoint) -> dict[str, str]:
    least, most = PEEK_RANGE_MS
    if not row.strict_peek_range or least <= row.peek_delay_ms <= most:
        return {}
    said = f"The strict peek range allows {least} to {most:,} ms; {row.peek_delay_ms:,} ms is outside of it."
    return {"peek_delay_ms": said}


def _exhausted(row: Endpoint) -> dict[str, str]:
    if row.on_exhausted not in Endpoint.Exhausted.values:
        return {"on_exhausted": f"Choose one of {', '.join(Endpoint.Exhausted.values)}."}
    if row.on_exhausted == Endpoint.Exhausted.ERROR_QUEUE and not row.error_queue:
        return {"error_queue": "Name the error queue that exhausted messages are sent to."}
    return _address(row)


def _address(row: Endpoint) -> dict[str, str]:
    try:
        if row.error_queue:
            postgresql().parse_address(row.error_queue, row.schema)
    except AddressNotUnderstood as error:
        return {"error_queue": str(error)}
    return {}
