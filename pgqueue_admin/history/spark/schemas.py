"""Schemas: of raw rows from the data source; of history and rejected rows in Parquet."""

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TEXT, _TIME, _LONG = StringType(), TimestampType(), LongType()


def _struct(**columns: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])  # type: ignore[arg-type]


RAW = _struct(
    seq=_LONG,
    queue=_TEXT,
    endpoint=_TEXT,
    result=_TEXT,
    message_id=_TEXT,
    message_type=_TEXT,
    exception_type=_TEXT,
    exception_message=_TEXT,
    stack_trace=_TEXT,
    sent_at=_TIME,
    ended_at=_TIME,
    headers=_TEXT,
    headers_bytes=IntegerType(),
    body=BinaryType(),
    body_bytes=IntegerType(),
    is_twin=BooleanType(),
)

REJECTED = _struct(
    source=_TEXT,
    seq=_LONG,
    queue=_TEXT,
    reason=_TEXT,
    headers=_TEXT,
    headers_bytes=IntegerType(),
    body_bytes=IntegerType(),
)

HISTORY = _struct(
    source=_TEXT,
    seq=_LONG,
    queue=_TEXT,
    endpoint=_TEXT,
    type=_TEXT,
    result=_TEXT,
    message_id=_TEXT,
    conversation_id=_TEXT,
    sent_at=_TIME,
    started_at=_TIME,
    ended_at=_TIME,
    critical_ms=_LONG,
    processing_ms=_LONG,
    delivery_ms=_LONG,
    skewed=BooleanType(),
    retried=BooleanType(),
    exception_type=_TEXT,
    exception_message=_TEXT,
    fingerprint=_TEXT,
    headers=_TEXT,
    body=BinaryType(),
    body_bytes=IntegerType(),
    batch=_LONG,
    day=DateType(),
)
