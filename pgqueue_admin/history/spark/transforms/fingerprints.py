"""Is it the same failure? Its type, the first frame that is not the framework's, its message without what varies."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.formatting import framework_frames
from pgqueue_admin.history.sources.size_limits import TRACE_MOST
from pgqueue_admin.history.spark.transforms.cached_columns import once

# Lines are looked through as one text: a list of them is ten times as slow.
_NET_FRAME = rf"(?md)^[^\S\n]+at (?!{framework_frames.NET})([^(\n]*)"
_PYTHON_FRAME = rf'(?md)^[^\S\n]+File "(?![^\n]*(?:{framework_frames.PYTHON}))(?:[^\n]*in (\S+)[^\S\n]*$)?'
_VARIES = [
    (r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", "<id>"),
    (r"\b(?=\d*[a-fA-F])(?=[a-fA-F]*\d)[0-9a-fA-F]{12,}+\b|\b(?=[A-Z]*\d)[0-9A-HJKMNP-TV-Z]{26}\b", "<id>"),  # ULIDs
    # an apostrophe between letters opens nothing and closes nothing; N stands before texts of SQL Server
    (r"(?<!\w)N?'(?:[^']++|(?<=\w)'(?=\w))*+'(?!\w)|\"[^\"]*\"|“[^”]*”", "<text>"),
    (r"\d+", "<n>"),
]
_LONGEST = 200
_LOOKED_AT = 4000  # characters: a quotation mark that nothing closes has all that follows looked through


def fingerprinted(messages: DataFrame) -> DataFrame:
    """Adds ``fingerprint``: 16 hexadecimal digits; null where nothing failed."""
    return messages.withColumn("fingerprint", _fingerprint())


@once
def _fingerprint() -> Column:
    parts = F.concat_ws("\n", "exception_type", _own_frame(), folded())
    return F.when(F.col("exception_type").isNotNull(), F.substring(F.sha2(parts, 256), 1, 16))


@once
def folded() -> Column:
    """exception_message without ids, quoted texts and numbers."""
    message = F.substring("exception_message", 1, _LOOKED_AT)
    for pattern, stands_for in _VARIES:
        message = F.regexp_replace(message, pattern, stands_for)
    return F.substring(message, 1, _LONGEST)


def _own_frame() -> Column:
    """The first of .NET's, which begin with the latest call, the last of Python's."""
    net = F.regexp_extract_all(F.substring("stack_trace", _after_message(), TRACE_MOST), F.lit(_NET_FRAME), 1)
    python = F.regexp_extract_all(F.substring("stack_trace", -TRACE_MOST, TRACE_MOST), F.lit(_PYTHON_FRAME), 1)
    return F.coalesce(F.get(net, F.lit(0)), F.try_element_at(python, F.lit(-1)))


def _after_message() -> Column:
    """Where frames may begin: a message of many pages, which .NET says once more before them, would hide them all."""
    said = F.concat("exception_type", F.lit(": "), "exception_message")
    return F.when(F.startswith("stack_trace", said), F.length("exception_message")).otherwise(0) + 1
