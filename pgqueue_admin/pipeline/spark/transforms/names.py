"""Names that figures are counted by: never null, and no longer than an index of the database can hold."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_BYTES, _CHARACTERS = 800, 200  # three names are one row of an index, which has 2,704 bytes at most


def named(history: DataFrame, names: list[str]) -> DataFrame:
    """Columns of ``names``, exception_type as ``exception``; empty where nothing is known."""
    renamed = history.withColumnsRenamed({"exception_type": "exception"}).fillna("", names)
    return renamed.withColumns({name: _cut(F.col(name)) for name in names})


def _cut(name: Column) -> Column:
    """Between two characters, whatever their size."""
    return F.when(F.octet_length(name) > _BYTES, F.substring(name, 1, _CHARACTERS)).otherwise(name)
