"""Which settings each kind of endpoint has."""

from pgqueue_admin.models.endpoint import Endpoint

_OF_EACH = frozenset(
    {"concurrency", "delayed_retries", "delayed_retry_step_ms", "drain_seconds", "memory_mb", "memory_kill_mb"}
)
SETTINGS = {
    Endpoint.Kind.TRANSPORT: _OF_EACH
    | {
        "peek_delay_ms",
        "max_records_to_peek",
        "immediate_retries",
        "on_exhausted",
        "error_queue",
        "strict_peek_range",
        "batch_size",
        "transaction_mode",
        "repeek_after",
        "notify",
        "purge_expired_at_start",
        "audit_queue",
        "audit_ttbr_seconds",
        "subscription_table",
        "outbox",
        "outbox_isolation",
        "outbox_keep_seconds",
        "outbox_clean_seconds",
        "outbox_relay_seconds",
    },
    Endpoint.Kind.LEASE: _OF_EACH | {"lock_seconds", "renewed_for_seconds", "on_lock_expired", "archive_success"},
}


def settings_of(row: Endpoint) -> frozenset[str]:
    return SETTINGS[Endpoint.Kind(row.kind)]
