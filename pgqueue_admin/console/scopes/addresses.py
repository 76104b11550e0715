"""URL names that support queue scopes: a person with scopes is refused at every other one, also at new ones.

A name is added here once ``tests/hostile/test_scoped.py`` finds nothing of another queue in its answers.
"""

from typing import NamedTuple

from django.http import HttpRequest

from pgqueue_admin.dialects import visible_queues

NARROWED = frozenset(
    {
        "person", "keys", "password", "sign_in", "sign_out", "live", "views", "view", "view_rename", "view_remove",
        "view_default", "endpoint", "endpoint_settings", "endpoint_effect", "endpoint_undo", "endpoint_start",
        "endpoint_stop", "endpoint_scale", "endpoint_pause", "endpoint_resume", "endpoint_restart",
        "overview", "queues", "queue", "queue_ends", "messages", "waiting_message", "waiting_body", "waiting_acts",
        "queue_send", "copy_waiting", "copy_archived", "edit_message", "delayed",
        "lease_message", "lease_publish", "lease_acts", "lease_release", "lease_end",
        "alerts", "alert", "alert_acknowledge", "alert_acknowledgement", "alert_acknowledgements",
        "finder", "find_message",
        "conversation",
        "archive", "archived_message", "archived_body", "archived_headers", "archive_export", "bin",
        "failures", "failure", "failures_chosen", "failure_assignment", "failure_acknowledgement",
        "operations", "operation", "operation_start", "operation_cancel", "operation_pause", "operation_resume",
        "operation_rate", "operation_edit",
        "queue_settings", "queue_settings_undo", "columns", "archive_suggestions", "masking_reveal",
        "trial_new", "trial", "crashing_message", "move_out", "audit", "audit_export", "endpoints", "subscriptions",
        "workers", "trends", "trends_types", "schedules", "schedule", "schedule_new", "schedule_read", "schedule_pause",
        "schedule_resume", "schedule_run", "schedule_remove",
    }
)  # fmt: skip
ONLY_OF_ALL = "needs somebody who sees all queues"
OF_MACHINES = frozenset({"healthz", "readyz", "post_mark"})  # called by machines, without a person


class AddressRefusal(NamedTuple):
    """Why an address is refused, and which pages are offered instead: words and page name."""

    why: str
    instead: tuple[tuple[str, str], ...] = ()


_OF_ALL = AddressRefusal("This page shows all queues together, and you may see some of them: it is not shown to you.")
_OF_OUTBOX = AddressRefusal(
    "An outbox belongs to no queue: its records are messages on their way to any queue, and name them. They are shown "
    "to people who see every queue. Whether your endpoints work is on their own pages, and what died in your queues is "
    "in the archive.",
    (("Your endpoints", "endpoints"), ("Your archive", "archive")),
)
_OF_HISTORY = AddressRefusal(
    "History reads and keeps the messages of all queues together, in the same batches and files. They are shown to "
    "people who see every queue. What History counted of each of your queues is in Trends, and what died there is in "
    "the archive.",
    (("Trends of your queues", "trends"), ("Your archive", "archive")),
)
_OF_LOG = AddressRefusal(
    "A log has whatever a process prints, also of other queues. It is shown to people who see every queue. How your "
    "processes do, and the last error of each, is on Workers.",
    (("Your workers", "workers"),),
)
_REFUSED = {
    "outbox": _OF_OUTBOX, "outboxes": _OF_OUTBOX, "history": _OF_HISTORY, "finished": _OF_HISTORY,
    "worker": _OF_LOG,
}  # fmt: skip


def refused(name: str) -> AddressRefusal:
    """The refusal for a URL name, by its first part, the noun."""
    return _REFUSED.get(name.partition("_")[0], _OF_ALL)


def is_open(name: str) -> bool:
    """Whether the page of this name may be linked to for this thread's user."""
    return name in NARROWED or visible_queues.current() is None


def name_of(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.view_name if match else ""
