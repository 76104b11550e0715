"""Is it the same failure? Its type, the first frame that is not the framework's, its message without what varies."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_FRAMEWORK = r"^\s+at ((NServiceBus|System|Microsoft|Npgsql|Newtonsoft)\.|lambda_method)"
_PACKAGE = r"/(site|dist)-packages/|/lib/python\d|pgqueue_admin/(transport|workers|archive|dialects)/"
_VARIES = [
    (r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", "<id>"),
    (r"'[^']*'|\"[^\"]*\"|“[^”]*”", "<text>"),
    (r"\d+", "<n>"),
]
_LONGEST = 200


def fingerprinted(messages: DataFrame) -> DataFrame:
    """Adds ``fingerprint``: 16 hexadecimal digits; null where nothing failed."""
    parts = F.concat_ws("\n", "exception_type", _own_frame(), folded(F.col("exception_message")))
    print_ = F.when(F.col("exception_type").isNotNull(), F.substring(F.sha2(parts, 256), 1, 16))
    return messages.withColumn("fingerprint", print_)


def folded(message: Column) -> Column:
    """The message without ids, quoted texts and numbers."""
    for pattern, stands_for in _VARIES:
        message = F.regexp_replace(message, pattern, stands_for)
    return F.substring(message, 1, _LONGEST)


def _own_frame() -> Column:
    lines = F.split("stack_trace", "\n")
    net = F.filter(lines, lambda line: line.rlike(r"^\s+at ") & ~line.rlike(_FRAMEWORK))
    python = F.filter(lines, lambda line: line.rlike(r'^\s+File "') & ~line.rlike(_PACKAGE))
    first = F.regexp_extract(F.get(net, F.lit(0)), r"^\s+at ([^(]*)", 1)
    last = F.regexp_extract(F.try_element_at(python, F.lit(-1)), r"in (\S+)\s*$", 1)
    return F.coalesce(first, last)
