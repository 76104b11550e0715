"""Parses headers: raw rows with the few headers that history needs, or the reason why a row cannot be kept."""

from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from pgqueue_admin.history.sources.masking import MASKED
from pgqueue_admin.history.sources.size_limits import BODY_MOST, HEADERS_MOST
from pgqueue_admin.history.spark.transforms import columns
from pgqueue_admin.history.spark.transforms.columns import once

_CORRUPT = "_corrupt"
_NAMES = {
    "message_id": "NServiceBus.MessageId",
    "conversation_id": "NServiceBus.ConversationId",
    "types": "NServiceBus.EnclosedMessageTypes",
    "endpoint": "NServiceBus.ProcessingEndpoint",
    "sent": "NServiceBus.TimeSent",
    "deliver_at": "NServiceBus.DeliverAt",
    "started": "NServiceBus.ProcessingStarted",
    "ended": "NServiceBus.ProcessingEnded",
}
_SCHEMA = StructType([StructField(name, StringType()) for name in (*_NAMES.values(), *columns.RETRY_HEADERS, _CORRUPT)])
TWIN = "its number is another row's too"
HEADERS_TOO_LARGE = f"its headers are larger than {HEADERS_MOST // 1_000_000} MB"
HEADERS_WITHHELD = "its headers may hold a masked name and are no flat JSON object"
NO_OBJECT = "its headers are no JSON object"
NO_END = "nothing says when it ended"
UNREADABLE_END = "the time at which it ended cannot be read"
# Possessive, and for a bounded text: Java's expressions take a stack frame for each repetition of a group.
_IN_BRACKETS = reduce(lambda inner, _: rf"(?:[^\[\]]++|\[{inner}*+\])", range(6), r"[^\[\]]")  # nested generics
_FULL_NAME = rf"^((?:[^,;\[\]]++|\[{_IN_BRACKETS}*+\])*+)"  # of the first type, without its assembly
_LONGEST = 2000
_TIME_BYTES = 28
_FIRST, _LAST = datetime(1980, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)  # times outside are errors


def body_too_large(most: int) -> str:
    return f"its body is larger than {most // 1_000_000} MB"


def parsed(raw: DataFrame, body_most: int = BODY_MOST) -> DataFrame:
    """Add ``blocking_reason`` (null: keep the row) and the message's properties, from its columns or else its headers.

    ``body_most``: bytes.
    """
    kept = [name for name in raw.columns if name not in {"message_id", "endpoint", "sent_at", "ended_at"}]
    known = raw.withColumn("told", _object()).select(*kept, *_known())
    return known.withColumn("blocking_reason", _blocking_reason(body_most)).drop("corrupt", "message_type", "said_end")


@once
def _object() -> Column:
    return F.from_json("headers", _SCHEMA, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})


@once
def _known() -> list[Column]:
    return [
        F.coalesce("message_id", _id("message_id")).alias("message_id"),
        _either("endpoint", "endpoint"),
        F.coalesce(_meant(F.col("sent_at")), _time(_header("sent"))).alias("sent_at"),
        F.coalesce(_meant(F.col("ended_at")), _time(_header("ended"))).alias("ended_at"),
        (F.col("ended_at").isNotNull() | _header("ended").isNotNull()).alias("said_end"),
        _time(_header("started")).alias("started_at"),
        _time(_header("deliver_at")).alias("deliver_at"),
        _id("conversation_id").alias("conversation_id"),
        F.coalesce("message_type", _clean(_first_type())).alias("type"),
        F.coalesce(*map(_told, columns.RETRY_HEADERS)).isNotNull().alias("retried"),
        (F.col(f"told.{_CORRUPT}").isNotNull() | ~_is_object()).alias("corrupt"),
    ]


def _header(name: str) -> Column:
    return _told(_NAMES[name])


def _told(header: str) -> Column:
    return F.col(f"told.`{header}`")


def _is_object() -> Column:
    """The expression copies the whole text in Java, so only headers that begin with space use it."""
    return F.col("headers").startswith("{") | F.col("headers").rlike(r"^\s*\{")


def _either(column: str, header: str) -> Column:
    return F.coalesce(column, _clean(_header(header))).alias(column)


def _id(name: str) -> Column:
    """A masked id is no id: all messages would share it and count as one."""
    return F.nullif(_clean(_header(name)), F.lit(MASKED))


def _clean(text: Column) -> Column:
    """Remove NUL, which JSON allows and PostgreSQL's texts do not."""
    return F.replace(text, F.lit("\0"), F.lit(""))


def _first_type() -> Column:
    told = _header("types")
    types = F.when(F.octet_length(told) > _LONGEST, F.substring(told, 1, _LONGEST)).otherwise(told)
    return F.nullif(F.trim(F.regexp_extract(types, _FULL_NAME, 1)), F.lit(""))


def _time(text: Column) -> Column:
    """The wire's 28 characters; null for any other text, which may end in a zone's offset. The sign marks a year:
    without it, the cast may read an hour of today."""
    told = F.concat(F.lit("+"), F.substring(text, 1, 19), F.lit("."), F.substring(text, 21, 6), F.lit("Z"))
    time = told.try_cast("timestamp")
    return F.when((F.octet_length(text) == _TIME_BYTES) & _is_meant(time), time)


def _meant(time: Column) -> Column:
    return F.when(_is_meant(time), time)


def _is_meant(time: Column) -> Column:
    return time.between(F.lit(_FIRST), F.lit(_LAST))


@once
def _blocking_reason(body_most: int) -> Column:
    ended = F.col("ended_at").isNotNull()
    return (
        F.when(F.col("is_twin"), TWIN)
        .when(F.col("headers_bytes") > HEADERS_MOST, HEADERS_TOO_LARGE)
        .when(F.col("headers").isNull() & F.col("headers_bytes").isNotNull(), HEADERS_WITHHELD)
        .when(F.col("corrupt"), NO_OBJECT)
        .when(~ended & F.col("said_end"), UNREADABLE_END)
        .when(~ended, NO_END)
        .when(F.col("body_bytes") > body_most, body_too_large(body_most))
    )
