"""Values as the driver reads and writes them, where its own way loses or waits.

Times of other people's tables that Python cannot hold: one would end the whole answer it is in. Lists of one kind are
written at once: item by item the driver takes longer than the server, and what a thousand messages are told takes
thousands of items.
"""

from datetime import UTC, datetime
from types import NoneType
from typing import Any
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.types.array import ListDumper
from psycopg.types.datetime import DatetimeDumper, TimestampLoader, TimestamptzLoader

from pgqueue_admin.dialects.out_of_range_times import Beyond

_BETWEEN = "\x1f"


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


class FlatListDumper(ListDumper):
    """As the driver's own, which writes all that is not numbers, ids or texts."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        kinds = set(map(type, obj))
        if kinds == {NoneType}:
            return b"{%b}" % b",".join([b"NULL"] * len(obj))
        if self.sub_dumper is None or len(obj) < 2:
            return super().dump(obj)
        if kinds == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        if kinds == {UUID}:
            return f"{{{','.join([each.hex for each in obj])}}}".encode()
        return self._texts(obj) if kinds == {str} else super().dump(obj)

    def _texts(self, texts: list[str]) -> Buffer | None:
        """Quoted after they are in the session's encoding, which may write a letter with a backslash."""
        assert self.sub_dumper
        joined = _BETWEEN.join(texts)
        if joined.count(_BETWEEN) != len(texts) - 1:
            return super().dump(texts)
        said = bytes(self.sub_dumper.dump(joined) or b"").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return b'{"%b"}' % said.replace(_BETWEEN.encode(), b'","')
