"""What is counted of a batch's rows, for tables of the console's database."""

from concurrent.futures import ThreadPoolExecutor

from django.db.models import Model
from pyspark.sql import DataFrame

from pgqueue_admin.pipeline.figures.counted import Figures
from pgqueue_admin.pipeline.spark.transforms.failures import failures
from pgqueue_admin.pipeline.spark.transforms.rollups import rollups
from pgqueue_admin.pipeline.spark.transforms.stories import stories
from pgqueue_admin.records.models import FailureRollup, Rollup, StoryPart

MADE = {Rollup: rollups, FailureRollup: failures, StoryPart: stories}
_AT_ONCE = ThreadPoolExecutor(len(MADE), "figures")  # these threads stay, and with them theirs in Java


def figures(history: DataFrame) -> list[Figures]:
    """Side by side: while Spark plans one, it counts another."""

    def made(model: type[Model]) -> Figures:
        return Figures(model, MADE[model](history).toArrow())

    return list(_AT_ONCE.map(made, MADE))
