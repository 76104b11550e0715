"""Rows as the data source returns them, written by hand."""

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row

from pgqueue_admin.history.spark.schemas import RAW

AUDITED = (
    '{"NServiceBus.MessageId":"m-1","NServiceBus.ConversationId":"c-1","NServiceBus.ProcessingEndpoint":"Sales",'
    '"NServiceBus.EnclosedMessageTypes":"Shop.PlaceOrder, Shop, Version=1.0.0.0;Shop.IOrder, Shop",'
    '"NServiceBus.TimeSent":"2026-11-14 12:00:00:000000 Z",'
    '"NServiceBus.ProcessingStarted":"2026-11-14 12:00:01:500000 Z",'
    '"NServiceBus.ProcessingEnded":"2026-11-14 12:00:01:750400 Z"}'
)
ENDED = datetime(2026, 11, 14, 12, 0, 1, 750400, tzinfo=UTC)


def raw(spark: Any, *rows: dict[str, Any]) -> Any:
    blank = dict.fromkeys(RAW.fieldNames()) | {"result": "success", "seq": 1, "is_twin": False}
    return spark.createDataFrame([Row(**{**blank, **row}) for row in rows], RAW)


def failed(message: str | None, trace: str | None) -> dict[str, Any]:
    return {"exception_type": "Refused", "exception_message": message, "stack_trace": trace}
