"""What do the headers say? Raw rows with the few headers that history needs, or the reason why they cannot be kept."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

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
_SCHEMA = StructType([StructField(name, StringType()) for name in (*_NAMES.values(), _CORRUPT)])
NOT_JSON = "its headers are not JSON"
NO_END = "nothing says when it ended"


def parsed(raw: DataFrame) -> DataFrame:
    """Adds ``why_not`` (null: keep it) and what is known of the message, from its columns or else its headers."""
    told = F.from_json("headers", _SCHEMA, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})
    known = raw.withColumn("told", told).select(
        *[name for name in raw.columns if name not in {"message_id", "endpoint", "sent_at", "ended_at"}],
        _either("message_id", "message_id"),
        _either("endpoint", "endpoint"),
        F.coalesce("sent_at", _time(_header("sent"))).alias("sent_at"),
        F.coalesce("ended_at", _time(_header("ended"))).alias("ended_at"),
        _time(_header("started")).alias("started_at"),
        _time(_header("deliver_at")).alias("deliver_at"),
        _header("conversation_id").alias("conversation_id"),
        F.coalesce("message_type", _first_type()).alias("type"),
        F.col(f"told.{_CORRUPT}").isNotNull().alias("corrupt"),
    )
    return known.withColumn("why_not", _why_not()).drop("corrupt", "message_type")


def _header(name: str) -> Column:
    return F.col(f"told.`{_NAMES[name]}`")


def _either(column: str, header: str) -> Column:
    return F.coalesce(column, _header(header)).alias(column)


def _first_type() -> Column:
    return F.nullif(F.regexp_extract(_header("types"), r"^([^,;]*)", 1), F.lit(""))


def _time(text: Column) -> Column:
    """The wire's 28 characters; null where they are none."""
    return F.concat(F.substring(text, 1, 19), F.lit("."), F.substring(text, 21, 6), F.lit("Z")).try_cast("timestamp")


def _why_not() -> Column:
    return F.when(F.col("corrupt"), NOT_JSON).when(F.col("ended_at").isNull(), NO_END)
