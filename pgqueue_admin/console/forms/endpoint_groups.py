"""Which settings of an endpoint stand together, and what each may be: for its table and for its form."""

from pgqueue_admin.records.endpoint_faults import MOST_BATCH, MOST_CONCURRENCY

GROUPS = {
    "Receiving": {
        "peek_delay_ms": "100 ms to 10 s; outside it is allowed with a warning",
        "max_records_to_peek": "1 or more; empty: as many as one peek counts",
        "concurrency": f"1 to {MOST_CONCURRENCY} in each process",
        "batch_size": f"1 to {MOST_BATCH:,}; above 1 one commit ends them all, and one that fails is undone alone",
        "transaction_mode": "what is one commit with the end of a message",
        "repeek_after": "the second waits for the slowest handler",
        "notify": "on: tells and hears of new messages at once; off: they wait for the next peek",
        "strict_peek_range": "on: a peek delay outside 100 ms to 10 s is refused",
    },
    "Retries": {
        "immediate_retries": "0 or more, one right after the other",
        "delayed_retries": "0 or more; after the immediate ones",
        "delayed_retry_step_ms": "the first waits this long, the second twice as long; at most 24 h",
        "on_exhausted": "archived as failed, or sent to the error queue",
        "error_queue": 'an address: "schema"."table"',
    },
    "Audit": {
        "audit_queue": "an address; gets a copy of each message that was handled; empty: no copies",
        "audit_ttbr_seconds": "how long a copy may wait there; empty: until somebody reads it",
    },
    "Process": {
        "memory_mb": "MB of resident memory; a process above it drains and is replaced; empty: no limit",
        "memory_kill_mb": "MB; above it a process is killed at once; larger than the first; empty: no limit",
        "drain_seconds": "how long a stopping process may finish what it has in hand",
    },
}
ALLOWED = {name: allowed for group in GROUPS.values() for name, allowed in group.items()}
# of a foreign endpoint only these are declared: they are what warnings judge
DECLARED = ("peek_delay_ms", "max_records_to_peek", "concurrency")


def shown(ours: bool) -> dict[str, list[str]]:
    """The names of each group, of an endpoint of ours or of one that is only declared."""
    groups = {title: [name for name in names if ours or name in DECLARED] for title, names in GROUPS.items()}
    return {title: names for title, names in groups.items() if names}
