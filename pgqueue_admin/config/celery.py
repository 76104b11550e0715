"""The Celery application and beat's schedule: `celery -A pgqueue_admin.config.celery worker` and `… beat`."""

import logging
import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init

from pgqueue_admin.config import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.settings")

if os.environ.get("CELERY_BROKER_URL"):  # Celery prefers it to the settings, which also enforce TLS verification
    os.environ["CELERY_BROKER_URL"] = env.broker("CELERY_BROKER_URL")

STATEMENT_SECONDS = 300.0  # for the console's own tables: a longer statement blocks one of a worker's two threads

app = Celery("pgqueue")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["pgqueue_admin.housekeeping"])
app.autodiscover_tasks(["pgqueue_admin.housekeeping"], related_name="celery_heartbeat")


def _every(seconds: float, task: str) -> dict[str, Any]:
    """Entry of the beat schedule. An untaken message expires: a later one finds the same work.

    It expires after a minute at the earliest: beat's clock may differ from the worker's by seconds.
    """
    return {
        "task": f"pgqueue_admin.housekeeping.tasks.{task}",
        "schedule": seconds,
        "options": {"expires": max(seconds, 60.0)},
    }


# Beat writes these into its table at each start. An entry switched off there stays off.
app.conf.beat_schedule = {
    "run started operations": _every(1, "run_operations"),
    "lapse frozen operations": _every(60, "lapse_operations"),
    "thin samples": _every(300, "thin_samples"),
    "compare hours": _every(300, "compare_hours"),
    "cut trends": _every(300, "cut_trends"),
    "fold figures": _every(300, "fold_figures"),
    "forget figures": _every(300, "forget_figures"),
    "tell failures": _every(10, "tell_failures"),
    "add up failures": _every(10, "add_up_failures"),
    "recount failures": _every(86_400, "recount_failures"),
    "end expired locks": _every(60, "keep_leases"),
    "follow lease rules": _every(60, "follow_lease_rules"),
    "send what is due": _every(60, "run_schedules"),
    "prune the archive": _every(600, "prune_archive"),
    "forget sign-ins": _every(600, "forget_sign_ins"),
    "forget marks": _every(3600, "forget_marks"),
}


def _as_everybody_does(**options: Any) -> None:
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


if os.environ.get("PGQUEUE_LOG_FORMAT") == "json":  # else Celery's own log format
    setup_logging.connect(_as_everybody_does, weak=False)


@worker_init.connect(weak=False)
def _limit_statements(**signal: Any) -> None:
    """Limit statements of workers alone: ``manage.py migrate`` has the same settings, and may take long."""
    from django.db import connections

    default = connections.settings["default"]
    default["OPTIONS"] = env.limited(default, STATEMENT_SECONDS)["OPTIONS"]


@worker_init.connect(weak=False)
@beat_init.connect(weak=False)
def _insist_on_own_sessions(**signal: Any) -> None:
    """Raises SystemExit."""
    from pgqueue_admin.models import pooler_check

    pooler_check.insist()


# A line for each of these a second would bury everything else in the log.
for _name in ("celery.app.trace", "celery.worker.strategy", "celery.beat"):
    logging.getLogger(_name).setLevel(logging.WARNING)
