"""The tasks that beat sends. Each finds its work by itself; one that is lost, late or doubled costs seconds at most."""

import time
from collections.abc import Callable
from datetime import timedelta

from celery import shared_task

from pgqueue_admin.history import ledger
from pgqueue_admin.history.anomalies import hourly_totals
from pgqueue_admin.history.rollups import closed_periods, retention
from pgqueue_admin.housekeeping import failure_groups, pruning, resume_operations
from pgqueue_admin.lease import upkeep
from pgqueue_admin.lease.schedules import runner
from pgqueue_admin.models import database_clock, depth_history, samples
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import lease_rules, login_throttle, marks
from pgqueue_admin.services.operations import reconcile, selection
from pgqueue_admin.workers.reporting import process_identity

MARKS_KEPT_FOR = timedelta(days=365)
A_WHILE = 10.0  # seconds; then the worker is free for others


@shared_task(ignore_result=True)
def run_operations() -> None:
    """Go on with operations that were started. Without a result: one a second would be kept."""
    resume_operations.run_started()


@shared_task
def lapse_operations() -> int:
    """Give up frozen sets that nobody started, and settle what given-up operations left behind."""
    lapsed = selection.lapse()
    reconcile.settle()
    return lapsed


@shared_task(ignore_result=True)
def forget_figures() -> None:
    """Minutes and hours of Trends that are too old, for a while; the next task goes on."""
    now = database_clock.now()
    _for_a_while(lambda: retention.forget(now))


@shared_task(ignore_result=True)
def fold_figures() -> None:
    """What batches left of an hour or a day becomes a row a kind, for a while; the next task goes on."""
    _for_a_while(closed_periods.fold)


@shared_task
def thin_samples() -> int:
    """Fold samples into history, then keep less of what is older."""
    now = database_clock.now()
    depth_history.fold(now)
    return samples.thin(now)


@shared_task
def forget_sign_ins() -> int:
    """Those that failed a month ago, and sessions that are over."""
    return login_throttle.forget()


@shared_task
def forget_marks() -> int:
    """Marks of deploys that were posted a year ago."""
    return marks.prune(MARKS_KEPT_FOR)


@shared_task
def prune_archive() -> int:
    """Forget what was decided longer ago than PGQUEUE_ARCHIVE_RETENTION_DAYS, and is in history where that is kept."""
    return pruning.prune_archive()


@shared_task(ignore_result=True)
def tell_failures() -> int:
    """Of which failure each dead message is that others archived, for a while; the next task goes on."""
    return failure_groups.catch_up()


@shared_task(ignore_result=True)
def add_up_failures() -> int:
    """Counts of failures stay small tables, and pages quick: how many sums became others."""
    return failure_groups.add_up()


@shared_task
def recount_failures() -> int:
    """Count the messages of each failure anew: how many counts were wrong, because somebody wrote past the triggers."""
    return failure_groups.recount()


@shared_task
def keep_leases() -> list[int]:
    """Lease messages whose locks are over end or come back, and unprocessed ones are told again: how many of each."""
    database = queue_database()
    with database.write_session() as connection:
        return list(upkeep.keep(connection, database.dialect))


@shared_task
def follow_lease_rules() -> int:
    """Dead lease messages whose time has come by a rule go back into their queue: how many."""
    return lease_rules.apply(A_WHILE)


@shared_task
def run_schedules() -> list[int]:
    """Messages that are due by the clock: how many were sent, passed over, and could not be sent."""
    database = queue_database()
    with database.write_session() as connection:
        return list(runner.run(connection, database.dialect, f"beat on {process_identity.mine().host}"))


@shared_task
def compare_hours() -> int:
    """Sum the hours of history that are over, and keep what was unusual in them."""
    return hourly_totals.see(database_clock.now())


@shared_task
def cut_trends() -> int:
    """Figures of the hours and days of history that are over, for a while; how many steps."""
    watermark = ledger.watermark()
    return _for_a_while(lambda: closed_periods.finalize(watermark))


def _for_a_while(step: Callable[[], int]) -> int:
    """Until nothing is left to do; how much was done."""
    deadline, done = time.monotonic() + A_WHILE, 0
    while more := step():
        done += more
        if time.monotonic() >= deadline:
            break
    return done
