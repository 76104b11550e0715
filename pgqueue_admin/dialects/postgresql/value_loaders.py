"""Values of other people's tables that Python cannot hold: one would end the whole answer it is in."""

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import DatetimeDumper, TimestampLoader, TimestamptzLoader

from pgqueue_admin.dialects.out_of_range_times import Beyond


class _Instant(TimestamptzLoader):
    timezone = UTC  # by which Django knows that it need not put its own loader in this place

    def load(self, data: Buffer) -> datetime:
        said = bytes(data)
        if said[4:5] == b"-" and said[-3:] == b"+00":  # as nearly all are: by Python's own reader, three times as fast
            try:
                return datetime.fromisoformat(said.decode()).astimezone(self._timezone)
            except ValueError:
                pass  # 44 BC ends otherwise, the year 294276 begins otherwise: what else is left, the driver knows
        try:
            return super().load(data)
        except psycopg.DataError:
            return Beyond.of(said.decode())


class _WallTime(TimestampLoader):
    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return Beyond.of(bytes(data).decode(), None)


class _Back(DatetimeDumper):
    """As the database wrote it."""

    def dump(self, obj: Any) -> bytes:
        return str(obj.isoformat()).encode()

    def upgrade(self, obj: datetime, format: Any) -> Any:
        return self


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    raw.adapters.register_loader("timestamptz", _Instant)
    raw.adapters.register_loader("timestamp", _WallTime)
    raw.adapters.register_dumper(Beyond, _Back)
    return raw
