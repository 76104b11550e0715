"""An endpoint's settings by group and kind, with the values that each allows: for its table and its form."""

from django.conf import settings

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.endpoint_validation import allowed
from pgqueue_admin.workers.processes.endpoint_settings import isolation_by_default

Groups = dict[str, dict[str, str]]

_CONCURRENCY = {"concurrency": f"{allowed('concurrency')} in each process"}
_STEP = {"delayed_retry_step_ms": f"{allowed('delayed_retry_step_ms')}; the second waits twice as long as the first"}
_PROCESS = {
    "memory_mb": f"{allowed('memory_mb')} MB resident; a process above it drains and is replaced; empty: no limit",
    "memory_kill_mb": f"{allowed('memory_kill_mb')} MB, more than the first; above it: killed; empty: no limit",
    "drain_seconds": f"{allowed('drain_seconds')}, in which a stopping process may finish what it has in flight",
}
# the first group of each kind is changed most
GROUPS: dict[str, Groups] = {
    Endpoint.Kind.TRANSPORT: {
        "Peek and concurrency": {
            "peek_delay_ms": f"{allowed('peek_delay_ms')}; outside of 100 ms to 10 s with a warning",
            "max_records_to_peek": f"{allowed('max_records_to_peek')}; empty: as many as one peek counts",
            **_CONCURRENCY,
        },
        "Receiving": {
            "batch_size": f"{allowed('batch_size')}; messages per commit. Above 1, a failing one is rolled back alone",
            "transaction_mode": "what commits together with removing the message",
            "repeek_after": "“handlers are done” waits for the slowest",
            "notify": "on: new messages are announced and received at once; off: they wait for the next peek",
            "purge_expired_at_start": "on: each process deletes what has expired before it receives, from its next "
            "start; off: each is dropped alone",
            "strict_peek_range": "on: a peek delay outside 100 ms to 10 s is refused",
        },
        "Retries": {
            "immediate_retries": f"{allowed('immediate_retries')}, one right after the other",
            "delayed_retries": f"{allowed('delayed_retries')}; after the immediate ones",
            **_STEP,
            "on_exhausted": "archived as failed, or sent to the error queue",
            "error_queue": 'an address: "schema"."table"',
        },
        "Audit": {
            "audit_queue": "an address; gets a copy of each message that was handled; empty: no copies",
            "audit_ttbr_seconds": f"{allowed('audit_ttbr_seconds')}, for which a copy may wait there; empty: for ever",
        },
        "Events": {
            "subscription_table": "an address, one for all endpoints; empty: SubscriptionRouting in its own schema",
        },
        "Outbox": {
            "outbox": "effects happen once; needs the mode receive only, and the table that `outbox_script` prints",
            "outbox_isolation": "of what handlers write in; snapshot where each of its databases has it",
            "outbox_keep_seconds": f"{allowed('outbox_keep_seconds')}; a duplicate that comes later is not recognised",
            "outbox_clean_seconds": f"{allowed('outbox_clean_seconds')}; empty: by a job of the database",
            "outbox_relay_seconds": f"{allowed('outbox_relay_seconds')}; then what a crash left unsent is sent; "
            "empty: only when its message comes again",
        },
        "Process": _PROCESS,
    },
    Endpoint.Kind.LEASE: {
        "Locks and concurrency": {
            "lock_seconds": f"{allowed('lock_seconds')}; renewed at half of it while a handler works",
            "on_lock_expired": "of a message whose process died: a dead message, or as many more goes as retries",
            **_CONCURRENCY,
        },
        "Handling": {
            "renewed_for_seconds": f"{allowed('renewed_for_seconds')}; then a handler's lock is left to expire; "
            "empty: renewed as long as it works",
            "archive_success": "off: what was handled is deleted, and leaves no row",
        },
        "Retries": {"delayed_retries": f"{allowed('delayed_retries')}; then it has failed", **_STEP},
        "Process": _PROCESS,
    },
}
# These name tables, or send to one: a person with scopes neither reads nor changes them.
NAMING = frozenset({"on_exhausted", "error_queue", "audit_queue", "audit_ttbr_seconds", "subscription_table"})
# only these are declared for a foreign endpoint: warnings judge them
DECLARED = tuple(GROUPS[Endpoint.Kind.TRANSPORT]["Peek and concurrency"])


def shown(endpoint: Endpoint) -> Groups:
    """What each setting allows, by group. An endpoint that is only declared has only declared settings."""
    hidden = NAMING if visible_queues.current() else frozenset()
    groups = {
        title: {
            name: _here(name, said)
            for name, said in names.items()
            if name not in hidden and (endpoint.ours or name in DECLARED)
        }
        for title, names in GROUPS[endpoint.kind].items()
    }
    return {title: names for title, names in groups.items() if names}


def _here(name: str, said: str) -> str:
    if name != "outbox_isolation":
        return said
    several = ", since handlers may enlist other databases" if settings.PGQUEUE["OUTBOX_DATABASES"] else ""
    return f"{said}; the default is {isolation_by_default().label} here{several}"
