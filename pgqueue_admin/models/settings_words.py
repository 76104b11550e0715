"""How setting values are written in tables, histories and sentences."""

from typing import Any

from pgqueue_admin.formatting.audit_verbs import past
from pgqueue_admin.formatting.durations import typed
from pgqueue_admin.formatting.numbers import format_int, pluralize, size
from pgqueue_admin.models import Endpoint

LABELS = {
    "peek_delay_ms": "peek delay",
    "max_records_to_peek": "peek batch (max_records_to_peek)",
    "concurrency": "concurrency per process",
    "immediate_retries": "immediate retries",
    "delayed_retries": "delayed retries",
    "delayed_retry_step_ms": "step of delayed retries",
    "on_exhausted": "when retries are used up",
    "error_queue": "error queue",
    "strict_peek_range": "strict peek range",
    "batch_size": "messages a transaction (batch_size)",
    "transaction_mode": "transaction mode",
    "repeek_after": "peek again when",
    "notify": "wake by NOTIFY",
    "purge_expired_at_start": "expired messages are deleted at a start",
    "audit_queue": "audit queue",
    "audit_ttbr_seconds": "how long audit copies live",
    "subscription_table": "subscription table",
    "outbox": "outbox",
    "outbox_isolation": "isolation of the outbox",
    "outbox_keep_seconds": "how long outbox records are kept",
    "outbox_clean_seconds": "outbox cleaned up every",
    "outbox_relay_seconds": "outbox relay after",
    "lock_seconds": "lock",
    "renewed_for_seconds": "lock renewed for",
    "on_lock_expired": "when a lock expires",
    "archive_success": "successes are archived",
    "drain_seconds": "drain time",
    "memory_mb": "memory limit of a process",
    "memory_kill_mb": "memory at which it is killed",
    "desired_processes": "processes",
    "restart_version": "restarted one by one, version",
    "paused": "paused",
    "target_age_seconds": "target for the oldest message",
    "target_depth": "target for depth",
    "target_dead": "target for dead messages",
    "ingest": "moved into the archive",
    "dispatch_allowed": "sending by hand",
    "relay_seconds": "relay after",
    "keep_seconds": "records kept",
    "acts_allowed": "acts on messages that wait",
}
_EMPTY = dict.fromkeys(("max_records_to_peek", "memory_mb", "memory_kill_mb"), "no limit")
_EMPTY["audit_ttbr_seconds"] = "forever"
_EMPTY["renewed_for_seconds"] = "as long as the handler works"
_EMPTY["subscription_table"] = "SubscriptionRouting in its schema"
_EMPTY["outbox_clean_seconds"] = "never: by a job of the database"
_EMPTY["outbox_relay_seconds"] = "never"
_EMPTY["relay_seconds"] = _EMPTY["keep_seconds"] = "off"
_CHOICES: dict[str, dict[str, str]] = {
    "outbox": dict(Endpoint.Outbox.choices),
    "outbox_isolation": dict(Endpoint.Isolation.choices),
    "on_exhausted": dict(Endpoint.Exhausted.choices),
    "transaction_mode": dict(Endpoint.Mode.choices),
    "repeek_after": dict(Endpoint.Repeek.choices),
    "on_lock_expired": dict(Endpoint.LockExpired.choices),
}

_NO_MORE_TO_SAY = {"pause", "resume", "restart"}  # the verb says the value


def label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def value(name: str, given: Any) -> str:
    if given is None or given == "":
        return _EMPTY.get(name, "none")
    if isinstance(given, bool):
        return "on" if given else "off"
    if isinstance(given, dict):  # a plan, what an edit changes
        return ", ".join(f"{label(each)} {value(each, part)}" for each, part in given.items())
    if isinstance(given, list):  # rules
        return "; ".join(value(name, each) for each in given) or "none"
    if name.endswith("_mb"):
        return size(given * 1_000_000)
    if name.endswith("_ms"):
        return typed(given / 1000)
    if name.endswith("_seconds"):
        return typed(given)
    if name in _CHOICES:
        return _CHOICES[name].get(given, str(given))
    return format_int(given) if isinstance(given, int) else str(given)


def change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """``peek delay 1 s → 12 s, concurrency per process 2 → 4``."""
    was = before or {}
    return ", ".join(
        f"{label(name)} {value(name, was.get(name))} → {value(name, to)}" for name, to in (after or {}).items()
    )


def did(verb: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """``set peek delay 1 s → 12 s``, ``stopped it: processes 2 → 0``, ``paused it``; for an outbox, what was sent."""
    if verb == "dispatch":
        of = after or {}
        sent = f"{pluralize(of.get('messages', 0), 'message')} of {pluralize(of.get('records', 0), 'record')}"
        return f"{past(verb)} it: {sent}"
    said = "" if verb in _NO_MORE_TO_SAY else change(before, after)
    if verb in {"set", "undo", "scale"}:
        return f"{past(verb)} {said}"
    return f"{past(verb)} it: {said}" if said else f"{past(verb)} it"
