"""History files written by hand, like an attempt's."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from pgqueue_admin.history.storage import parquet_scan
from pgqueue_admin.models import DataFile

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
_TIMES, _NUMBERS = ("sent_at", "started_at", "ended_at"), ("seq", "critical_ms", "processing_ms", "delivery_ms")
SCHEMA = pa.schema(
    dict.fromkeys((*parquet_scan.WHOLE, "fingerprint"), pa.string())
    | dict.fromkeys(_TIMES, pa.timestamp("us", "UTC"))
    | dict.fromkeys(_NUMBERS, pa.int64())
    | {"body": pa.binary(), "body_bytes": pa.int32()}
)
HEADERS = '{"NServiceBus.MessageId":"m-1","NServiceBus.ContentType":"text/plain","Shop.Odd":"<b>"}'


def message(seq: int, ended_at: datetime = TEN, **changes: object) -> dict[str, object]:
    known = {"source": "audit", "seq": seq, "endpoint": "Sales", "type": "Shop.PlaceOrder", "result": "success"}
    kept = {"ended_at": ended_at, "message_id": f"m-{seq}", "headers": HEADERS, "body": b"hello", "body_bytes": 5}
    return {**known, **kept, **changes}


def write(history: Path, *messages: dict[str, object], day: datetime = TEN) -> Path:
    """Write a history file and its manifest rows."""
    path = history / "v3" / f"part-{DataFile.objects.count()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist(list(messages), schema=SCHEMA), path)
    place, size = str(path.relative_to(history)), path.stat().st_size
    DataFile.objects.create(path=place, day=day.date(), rows=len(messages), bytes=size)
    return path
