"""Names that figures are counted by: never null, and no longer than an index of the database can hold."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.rollups.name_limits import BYTES, CHARACTERS
from pgqueue_admin.history.spark.transforms.cached_columns import once


def named(history: DataFrame, names: list[str]) -> DataFrame:
    """Columns of ``names``, exception_type as ``exception``; empty where nothing is known."""
    renamed = history.withColumnsRenamed({"exception_type": "exception"}).fillna("", names)
    return renamed.withColumns({name: _cut(name) for name in names})


@once
def _cut(name: str) -> Column:
    """As figures.names has it."""
    return F.when(F.octet_length(name) > BYTES, F.substring(name, 1, CHARACTERS)).otherwise(F.col(name))
