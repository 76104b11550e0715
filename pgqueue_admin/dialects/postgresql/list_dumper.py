"""Lists of one kind as the server reads arrays, written at once: item by item the driver takes longer than the server.

What a thousand messages are told takes thousands of items.
"""

from types import NoneType
from typing import Any
from uuid import UUID

from psycopg.abc import Buffer
from psycopg.types.array import ListDumper

_BETWEEN = "\x1f"


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
