"""The next step for a warning, the same on every page that shows it: its words and its link."""

from django.urls import reverse

from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.alerts.mail import links
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.models import Alert

_PAGES = {  # kind: words and page
    "peek_range": ("Open its settings", "endpoint"),
    "ttbr_conflict": ("Open its settings", "endpoint"),
    "worker_crashing": ("See the process", "workers"),
    "host_lost": ("See its processes", "workers"),
    "circuit_breaker_open": ("Open the endpoint", "endpoint"),
    "sampler_stale": ("See the processes", "workers"),
    "deaf": ("See the process", "workers"),
    "blind": ("See the queues", "queues"),
    "no_consumer": ("See who runs", "workers"),
    "old_deaths": ("Open the archive", "archive"),
    "outbox_undispatched": ("See the outboxes", "outboxes"),
    "transaction_in_doubt": ("See the transactions", "outboxes"),
    "crossing_undecided": ("See the crossings", "crossings"),
    "expired_locks": ("See the processes", "workers"),
    "schedule_not_sent": ("See the schedules", "schedules"),
    "mail_failing": ("See the mails", "alert_mails"),
}


UNTOLD = Failures()


def of(alert: Alert, failures: Failures = UNTOLD) -> tuple[str, str] | None:
    """None if the warning needs no page, or this person may not open it.

    ``failures``: of a warning about dead messages, which links to the same page as its mail.
    """
    if alert.kind == "dead_message":
        words = "Open the failure" if failures.only else "Open the failures"
        return words, links.to_failures(alert, failures)
    if alert.kind == "crashing_message" and addresses.is_open("crashing_message"):
        return "Move that message out…", reverse("crashing_message", kwargs={"row_id": alert.subject})
    words, page = _PAGES.get(alert.kind, ("", ""))
    named = {"name": alert.subject} if page == "endpoint" else None
    return (words, reverse(page, kwargs=named)) if page and addresses.is_open(page) else None
