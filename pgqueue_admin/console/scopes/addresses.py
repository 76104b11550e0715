"""Which addresses know queue scopes: a person with some is refused at every other one, also at those that come later.

An address is added here once ``tests/hostile/test_scoped.py`` finds nothing of another queue in its answers.
"""

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
        "workers", "trends", "trends_types",
    }
)  # fmt: skip
ONLY_OF_ALL = "needs somebody who sees all queues"
OF_MACHINES = frozenset({"healthz", "readyz", "post_mark"})  # no person is asked for there


def is_open(name: str) -> bool:
    """Whether the page of this name may be linked to, for whom this thread asks."""
    return name in NARROWED or visible_queues.current() is None


def name_of(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.view_name if match else ""
