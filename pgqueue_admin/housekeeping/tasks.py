"""The tasks that beat sends. Each finds its own work; one that is lost, late or duplicated costs seconds at most."""

import time
from collections.abc import Callable
from datetime import timedelta

from celery import shared_task

from pgqueue_admin.history import ledger
from pgqueue_admin.history.anomalies import hourly_totals
from pgqueue_admin.history.rollups import closed_periods, retention
from pgqueue_admin.housekeeping import failure_groups, pruning, resume_operations
from pgqueue_admin.lease import expiry
from pgqueue_admin.lease.schedules import runner
from pgqueue_admin.models import database_clock, depth_history, samples
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import lease_rules, login_throttle, marks
from pgqueue_admin.services.operations import reconcile, selection
from pgqueue_admin.workers.reporting import process_identity

MARKS_KEPT_FOR = timedelta(days=365)
A_WHILE = 10.0  # seconds; then the worker is free for other tasks


@shared_task(ignore_result=True)
def run_operations() -> None:
    """Continue operations that were started. No result is stored: there would be one a second."""
    resume_operations.run_started()


@shared_task
def lapse_operations() -> int:
    """Give up frozen sets that nobody started, and clean up after operations that were given up."""
    lapsed = selection.lapse()
    reconcile.settle()
    return lapsed


@shared_task(ignore_result=True)
def forget_figures() -> None:
    """Delete old minutes and hours of Trends, for a while; the next run continues."""
    now = database_clock.now()
    _for_a_while(lambda: retention.forget(now))


@shared_task(ignore_result=True)
def fold_figures() -> None:
    """Fold the rows that batches left of an hour or a day into one per kind, for a while; the next run continues."""
    _for_a_while(closed_periods.fold)


@shared_task
def thin_samples() -> int:
    """Fold samples into history, then thin out older ones."""
    now = database_clock.now()
    depth_history.fold(now)
    return samples.thin(now)


@shared_task
def forget_sign_ins() -> int:
    """Delete failed sign-ins after a month, and expired sessions."""
    return login_throttle.forget()


@shared_task
def forget_marks() -> int:
    """Delete marks of deploys that were posted a year ago."""
    return marks.prune(MARKS_KEPT_FOR)


@shared_task
def prune_archive() -> int:
    """Delete messages decided longer ago than PGQUEUE_ARCHIVE_RETENTION_DAYS, after history, if kept, has read them."""
    return pruning.prune_archive()


@shared_task(ignore_result=True)
def tell_failures() -> int:
    """Compute fingerprints of dead messages that others archived, for a while; the next run continues."""
    return failure_groups.catch_up()


@shared_task(ignore_result=True)
def add_up_failures() -> int:
    """Add up counts of failures, which keeps tables small and pages fast; return how many sums changed."""
    return failure_groups.add_up()


@shared_task
def recount_failures() -> int:
    """Recount the messages of each failure; return how many counts were wrong because a write bypassed the triggers."""
    return failure_groups.recount()


@shared_task
def keep_leases() -> list[int]:
    """End or release lease messages with expired locks, notify again of unprocessed ones; return the number of each."""
    database = queue_database()
    with database.write_session() as connection:
        return list(expiry.end_and_renotify(connection, database.dialect))


@shared_task
def follow_lease_rules() -> int:
    """Put dead lease messages back into their queue when a rule makes them due; return how many."""
    return lease_rules.apply(A_WHILE)


@shared_task
def run_schedules() -> list[int]:
    """Send messages that schedules make due; return how many were sent, skipped, and failed."""
    database = queue_database()
    with database.write_session() as connection:
        return list(runner.run(connection, database.dialect, f"beat on {process_identity.mine().host}"))


@shared_task
def compare_hours() -> int:
    """Sum the finished hours of history, and store their anomalies."""
    return hourly_totals.see(database_clock.now())


@shared_task
def cut_trends() -> int:
    """Finalize figures of finished hours and days of history, for a while; return how many steps."""
    watermark = ledger.watermark()
    return _for_a_while(lambda: closed_periods.finalize(watermark))


def _for_a_while(step: Callable[[], int]) -> int:
    """Repeat until nothing is left or the time is over; return how much was done."""
    deadline, done = time.monotonic() + A_WHILE, 0
    while more := step():
        done += more
        if time.monotonic() >= deadline:
            break
    return done
