"""Aggregates a batch's rows for tables of the console's database."""

from concurrent.futures import ThreadPoolExecutor

from django.db.models import Model
from pyspark.sql import DataFrame

from pgqueue_admin.history.rollups.copy_format import BatchRollups
from pgqueue_admin.history.spark.transforms.failures import failures
from pgqueue_admin.history.spark.transforms.retry_outcomes import retry_outcomes
from pgqueue_admin.history.spark.transforms.rollups import rollups
from pgqueue_admin.history.storage.message_lookup import DISCARDED
from pgqueue_admin.models import FailureRollup, RetryOutcome, Rollup

MADE = {Rollup: rollups, FailureRollup: failures, RetryOutcome: retry_outcomes}
_AT_ONCE = ThreadPoolExecutor(len(MADE), "figures")  # persistent threads, each with its own in Java


def figures(history: DataFrame) -> list[BatchRollups]:
    """In parallel: Spark plans one while it counts another. Messages discarded while they waited are left out."""
    ended = history.where(f"not (result <=> '{DISCARDED}')")

    def made(model: type[Model]) -> BatchRollups:
        return BatchRollups(model, MADE[model](ended).toArrow())

    return list(_AT_ONCE.map(made, MADE))
