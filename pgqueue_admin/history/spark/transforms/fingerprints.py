"""Fingerprints of failures, by the rule of ``formatting.fingerprint``, as Spark columns."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.formatting.fingerprint import DIGITS, LONGEST, LOOKED_AT, TRACE_MOST, VARIES, frames
from pgqueue_admin.history.spark.transforms.columns import once

_LINES = "(?md)"  # splitting into lines would be ten times slower


def fingerprinted(messages: DataFrame, own_code: tuple[str, ...] = ()) -> DataFrame:
    """Add ``fingerprint``: 16 hexadecimal digits; null if nothing failed."""
    return messages.withColumn("fingerprint", _fingerprint(own_code))


@once
def _fingerprint(own_code: tuple[str, ...]) -> Column:
    parts = F.concat_ws("\n", "exception_type", _own_frame(own_code), folded())
    return F.when(F.col("exception_type").isNotNull(), F.substring(F.sha2(parts, 256), 1, DIGITS))


@once
def folded() -> Column:
    """exception_message without ids, quoted texts and numbers."""
    message = F.substring("exception_message", 1, LOOKED_AT)
    for pattern, stands_for in VARIES:
        message = F.regexp_replace(message, pattern, stands_for)
    return F.substring(message, 1, LONGEST)


def _own_frame(own_code: tuple[str, ...]) -> Column:
    """First frame of a .NET trace, which begins with the latest call; last frame of a Python trace."""
    net = F.substring("stack_trace", _after_message(), TRACE_MOST)
    python = F.substring("stack_trace", -TRACE_MOST, TRACE_MOST)
    found = []
    for net_frame, python_frame in frames(own_code):
        found.append(F.get(F.regexp_extract_all(net, F.lit(_LINES + net_frame), 1), F.lit(0)))
        calls = F.regexp_extract_all(python, F.lit(_LINES + python_frame), 1)
        found.append(F.try_element_at(calls, F.lit(-1)))
    return F.coalesce(*found)


def _after_message() -> Column:
    """Where frames may begin: .NET repeats the message before them, and a long one would hide all frames."""
    said = F.concat("exception_type", F.lit(": "), "exception_message")
    return F.when(F.startswith("stack_trace", said), F.length("exception_message")).otherwise(0) + 1
