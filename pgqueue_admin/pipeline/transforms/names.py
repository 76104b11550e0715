"""Names that figures are counted by: never null, and no longer than an index of the database can hold."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_LONGEST = 400


def named(history: DataFrame, names: list[str]) -> DataFrame:
    """Columns of ``names``, exception_type as ``exception``; empty where nothing is known."""
    renamed = history.withColumnsRenamed({"exception_type": "exception"}).fillna("", names)
    return renamed.withColumns({name: F.substring(name, 1, _LONGEST) for name in names})
