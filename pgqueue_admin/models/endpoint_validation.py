"""Validates an endpoint's settings; reports every fault at once, field by field."""

from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.dialects import Dialect, dialect_for
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting.durations import typed
from pgqueue_admin.formatting.numbers import NBSP
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import queue_database

MOST_PROCESSES = 64
MOST_CONCURRENCY = 64
MOST_BATCH = 1000  # a batch is held in memory, and handled again after a crash
LONGEST_PEEK_DELAY_MS = 24 * 3600 * 1000
LONGEST_DRAIN_SECONDS = 3600
MOST_MEMORY_MB = 1_000_000
LONGEST_RETRY_STEP_MS = 24 * 3600 * 1000  # none follows a delayed retry older than a day
LONGEST_LOCK_SECONDS = 24 * 3600
LONGEST_KEEP_SECONDS = 365 * 24 * 3600
LONGEST_WAIT_MS = 365 * 24 * 3600 * 1000  # longest wait of a lease message before its last retry
LONGEST_AUDIT_SECONDS = 10 * 365 * 24 * 3600
PEEK_RANGE_MS = (100, 10_000)  # T15: the recommended range; only strict_peek_range enforces it


class _Range(NamedTuple):
    label: str
    least: int
    most: int
    said: Callable[[int], str] = "{:,}".format
    kind: str = "a whole number "


def _span(label: str, least: int, most: int, per_second: int = 1) -> _Range:
    return _Range(label, least, most, lambda number: typed(number / per_second).replace(NBSP, " "), kind="")


_NUMBERS = {
    "desired_processes": _Range("Processes", 0, MOST_PROCESSES),
    "memory_mb": _Range("Memory limit in MB", 1, MOST_MEMORY_MB),
    "memory_kill_mb": _Range("Memory at which it is killed, in MB,", 1, MOST_MEMORY_MB),
    "drain_seconds": _span("Drain time", 0, LONGEST_DRAIN_SECONDS),
    "peek_delay_ms": _span("Peek delay", 1, LONGEST_PEEK_DELAY_MS, 1000),
    "max_records_to_peek": _Range("Peek batch", 1, 1_000_000),
    "concurrency": _Range("Concurrency", 1, MOST_CONCURRENCY),
    "batch_size": _Range("Messages a transaction", 1, MOST_BATCH),
    "immediate_retries": _Range("Immediate retries", 0, 1000),
    "delayed_retries": _Range("Delayed retries", 0, 1000),
    "delayed_retry_step_ms": _span("Step of delayed retries", 0, LONGEST_RETRY_STEP_MS, 1000),
    "audit_ttbr_seconds": _span("The life of copies", 1, LONGEST_AUDIT_SECONDS),
    "lock_seconds": _span("Lock", 1, LONGEST_LOCK_SECONDS),
    "renewed_for_seconds": _span("Renewed for", 0, LONGEST_LOCK_SECONDS),
    "outbox_keep_seconds": _span("How long records of the outbox are kept", 3600, LONGEST_KEEP_SECONDS),
    "outbox_clean_seconds": _span("The time between clean-ups of the outbox", 10, 24 * 3600),
    "outbox_relay_seconds": _span("How long the relay of the outbox waits", 10, 24 * 3600),
}
_MAY_BE_NONE = frozenset(
    {
        "max_records_to_peek",
        "memory_mb",
        "memory_kill_mb",
        "audit_ttbr_seconds",
        "renewed_for_seconds",
        "outbox_clean_seconds",
        "outbox_relay_seconds",
    }
)
_CHOICES = {
    "on_exhausted": Endpoint.Exhausted,
    "transaction_mode": Endpoint.Mode,
    "repeek_after": Endpoint.Repeek,
    "on_lock_expired": Endpoint.LockExpired,
    "outbox": Endpoint.Outbox,
    "outbox_isolation": Endpoint.Isolation,
}

_OWN = {
    "error_queue": "What failed would come straight back to the endpoint's own queue: name another.",
    "audit_queue": "Copies in the endpoint's own queue would be received and copied again, without end: name another.",
    "subscription_table": "The endpoint's own queue holds messages and no subscriptions: name another table.",
}


def allowed(field: str) -> str:
    """The range as text, ``1 to 64``, by the numbers that ``faults`` checks."""
    _, least, most, said, _ = _NUMBERS[field]
    return f"{said(least)} to {said(most)}"


def faults(row: Endpoint) -> dict[str, str]:
    """A sentence for each invalid field."""
    found = {field: fault for field in _NUMBERS if (fault := _number(row, field))}
    found |= {field: fault for field in _CHOICES if (fault := _choice(row, field))}
    together = _strict_range(row) | _memory(row) | _deleted_first(row) | _last_retry(row) | _outbox(row)
    together |= _destinations(row) | _isolation(row)
    return {field: fault for field, fault in together.items() if field not in found} | found


def _number(row: Endpoint, field: str) -> str | None:
    label, least, most, said, kind = _NUMBERS[field]
    value = getattr(row, field)
    if value is None and field in _MAY_BE_NONE:
        return None
    if _whole(value) and least <= value <= most:
        return None
    given = said(value) if _whole(value) else repr(value)
    return f"{label} is {kind}from {said(least)} to {said(most)}; {given} is not."


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _choice(row: Endpoint, field: str) -> str | None:
    words = _CHOICES[field].values
    return None if getattr(row, field) in words else f"Choose one of {', '.join(words)}."


def _memory(row: Endpoint) -> dict[str, str]:
    drain, kill = row.memory_mb, row.memory_kill_mb
    if not isinstance(drain, int) or not isinstance(kill, int) or kill > drain:
        return {}
    return {"memory_kill_mb": f"It is killed above {kill:,} MB, so it never drains at {drain:,} MB: name a larger one."}


def _strict_range(row: Endpoint) -> dict[str, str]:
    least, most = PEEK_RANGE_MS
    if not row.strict_peek_range or not _whole(row.peek_delay_ms) or least <= row.peek_delay_ms <= most:
        return {}
    said = f"The strict peek range allows {least} to {most:,} ms; {row.peek_delay_ms:,} ms is outside of it."
    return {"peek_delay_ms": said}


def _last_retry(row: Endpoint) -> dict[str, str]:
    retries, step = row.delayed_retries, row.delayed_retry_step_ms
    if row.kind != Endpoint.Kind.LEASE or not _whole(retries) or not _whole(step) or retries * step <= LONGEST_WAIT_MS:
        return {}
    return {"delayed_retries": f"The last retry would wait for {typed(retries * step / 1000)}: a year at most."}


def _outbox(row: Endpoint) -> dict[str, str]:
    """An atomic receive could roll back what the outbox was to send. The mode none switches the outbox off (O10)."""
    if row.outbox == Endpoint.Outbox.OFF:
        return {}
    found = {}
    if row.transaction_mode == Endpoint.Mode.SENDS_ATOMIC_WITH_RECEIVE:
        found["outbox"] = (
            "An outbox needs the mode receive only. With sends atomic with receive none is needed: what handlers write "
            "by context.connection is one commit with the message."
        )
    if row.batch_size != 1:
        found["batch_size"] = "With an outbox each message has a record and a commit of its own: 1, or no outbox."
    return found


def _isolation(row: Endpoint) -> dict[str, str]:
    """Every database that its handlers write to must support the level, as far as its dialect is known here."""
    wanted = row.outbox_isolation
    if row.outbox == Endpoint.Outbox.OFF or wanted == Endpoint.Isolation.DEFAULT:
        return {}
    named = {"": queue_database().dsn, **settings.PGQUEUE["OUTBOX_DATABASES"]}
    known = [(name, dialect) for name, dsn in named.items() if (dialect := _dialect(dsn))]
    name, dialect = next((each for each in known if wanted not in each[1].isolations), ("", None))
    if dialect is None:
        return {}
    where = f"{dialect.name}, where {name} is" if name else dialect.name
    labels = ", ".join(Endpoint.Isolation(each).label for each in dialect.isolations)
    return {"outbox_isolation": f"{Endpoint.Isolation(wanted).label} is none of {where}: it has {labels}."}


def _dialect(dsn: str) -> Dialect | None:
    """None: unknown scheme; the engine reports it at its start."""
    try:
        return dialect_for(dsn)
    except ValueError:
        return None


def _deleted_first(row: Endpoint) -> dict[str, str]:
    """Settings that the mode none cannot honour."""
    if row.transaction_mode != Endpoint.Mode.NONE:
        return {}
    once = "With the mode none a message is deleted before its handler runs and cannot be retried: 0, or another mode."
    found = {field: once for field in ("immediate_retries", "delayed_retries") if getattr(row, field) != 0}
    if row.batch_size != 1:
        found["batch_size"] = "With the mode none a crash would lose what no handler has begun: 1, or another mode."
    return found


def _destinations(row: Endpoint) -> dict[str, str]:
    """The other queues and tables it writes to, checked by name alone."""
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
