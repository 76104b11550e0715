"""What is counted of a batch's rows, as rows of the console's database."""

from collections.abc import Iterator

from django.db.models import Model
from pyspark.sql import DataFrame

from pgqueue_admin.pipeline.transforms.failures import failures
from pgqueue_admin.pipeline.transforms.rollups import rollups
from pgqueue_admin.pipeline.transforms.stories import stories
from pgqueue_admin.records.models import FailureRollup, HistoryBatch, Rollup, StoryPart

MADE = {Rollup: rollups, FailureRollup: failures, StoryPart: stories}


def figures(batch: HistoryBatch, history: DataFrame) -> Iterator[Model]:
    for model, transform in MADE.items():
        yield from (model(batch=batch, **row) for row in transform(history).toArrow().to_pylist())
