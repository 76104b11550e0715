"""Value adapters that replace the driver's, which fail or are slow.

Foreign tables may have times beyond Python's range: one would fail the whole result. Lists of one type are written at
once: item by item, the driver takes longer than the server, and acts on a thousand messages pass thousands of items.
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
    timezone = UTC  # tells Django not to register its own loader

    def load(self, data: Buffer) -> datetime:
        said = bytes(data)
        if said[4:5] == b"-" and said[-3:] == b"+00":  # the usual form: Python's parser is three times as fast
            try:
                return datetime.fromisoformat(said.decode()).astimezone(self._timezone)
            except ValueError:
                pass  # the driver decides; 44 BC and the year 294276 do not get here
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
    """Writes the database's own text."""

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
    """Writes lists of numbers, ids or texts; the driver's dumper writes all others."""

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
        """Quote after encoding, because an escape for a character that the encoding lacks contains a backslash."""
        assert self.sub_dumper
        joined = _BETWEEN.join(texts)
        if joined.count(_BETWEEN) != len(texts) - 1:
            return super().dump(texts)
        said = bytes(self.sub_dumper.dump(joined) or b"").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return b'{"%b"}' % said.replace(_BETWEEN.encode(), b'","')
