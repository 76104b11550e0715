"""Scans Parquet files for messages or events. A separate program: JSON on stdin, JSON on stdout.

Keeps Arrow out of the caller's memory; an unreadable file ends only this process. Independent of Django.
"""

import json
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, read_table

from pgqueue_admin.history.rollups import name_limits

LISTED = (
    "source", "seq", "queue", "endpoint", "type", "result", "message_id", "sent_at", "started_at", "ended_at",
    "critical_ms", "processing_ms", "delivery_ms", "exception_type", "exception_message", "body_bytes",
)  # fmt: skip
WITH_HEADERS = (*LISTED, "conversation_id", "headers")
WHOLE = (*WITH_HEADERS, "body")
_COLUMNS = {"listed": LISTED, "with headers": WITH_HEADERS, "whole": WHOLE}
EVENT = ("event", "archive_id", "at", "who", "verb", "operation", "target", "reason")
_PLACE = pa.schema(
    {
        "ended_at": pa.timestamp("us", "UTC"),
        "seq": pa.int64(),
        "file": pa.int64(),
        "group": pa.int64(),
        "row": pa.int64(),
    }
)
_NEWEST = [("ended_at", "descending"), ("seq", "descending")]
_ROWS = 16_384  # per read: a row group may exceed memory
_WHOLE_ROWS = 512


class RowPredicate(NamedTuple):
    """A time range, required and excluded values by column, and value ranges (None: no end)."""

    begin: datetime
    end: datetime
    equal: dict[str, Any]
    unequal: dict[str, list[Any]]
    between: dict[str, tuple[int, int | None]]

    @property
    def columns(self) -> list[str]:
        return ["ended_at", "seq", *self.equal, *self.unequal, *self.between]


def answer(
    paths: list[str],
    since: str,
    until: str,
    equal: dict[str, Any],
    unequal: dict[str, list[Any]],
    between: dict[str, tuple[int, int | None]],
    most: int,
    part: str,
    within: float,
) -> Any:
    """``rows``: the newest ``most``; ``matched``: number of matches; ``unread``: files not read in time.

    ``paths`` in order of priority; ``equal``, ``unequal`` and ``between`` by column, as in RowPredicate;
    ``part``: of _COLUMNS; ``within``: seconds.
    """
    asked = RowPredicate(datetime.fromisoformat(since), datetime.fromisoformat(until), equal, unequal, between)
    parts = ((number, places) for number, path in enumerate(paths) for places in _places(path, number, asked))
    kept, matched, unread = _found(parts, most, len(paths), time.monotonic() + within)
    return {"rows": _rows(paths, kept, part), "matched": matched, "unread": unread}


def events(paths: list[str], source: str, seq: int, message_id: str | None, within: float) -> Any:
    """``rows``: events of one message of a table, unordered; ``unread``: files not read in time.

    A recreated archive starts its numbers again, so the message id must match, too, if both are known.
    """
    ends, rows = time.monotonic() + within, list[Any]()
    asked = (pc.field("source") == source) & (pc.field("seq") == seq)
    if message_id is not None:
        asked &= (pc.field("message_id") == message_id) | pc.field("message_id").is_null()
    for number, path in enumerate(paths):
        if time.monotonic() > ends:
            return {"rows": rows, "unread": len(paths) - number}
        found = read_table(path, columns=list(EVENT), filters=asked, partitioning=None, use_threads=False)
        rows += [{name: _plain(value) for name, value in row.items()} for row in found.to_pylist()]
    return {"rows": rows, "unread": 0}


def _found(parts: Iterator[tuple[int, Any]], most: int, files: int, ends: float) -> tuple[Any, int, int]:
    """Places of the newest matches, number of matches, and number of files not read to their end."""
    kept, matched = _PLACE.empty_table(), 0
    for number, places in parts:
        matched += places.num_rows
        kept = _newest(pa.concat_tables([kept, places]), most)
        if time.monotonic() > ends:
            return kept, matched, files - number
    return kept, matched, 0


def _places(path: str, number: int, asked: RowPredicate) -> Iterator[Any]:
    """Places of matches, a part of a file at a time; reads few columns."""
    file = ParquetFile(path)
    for group in range(file.num_row_groups):
        if not _may_hold(file.metadata.row_group(group), asked):
            continue
        row = 0
        for part in file.iter_batches(_ROWS, [group], asked.columns):
            found = pc.indices_nonzero(_wanted(part, asked)).cast(pa.int64())
            told = [part["ended_at"].take(found), part["seq"].take(found)]
            where = [pa.repeat(pa.scalar(each, pa.int64()), len(found)) for each in (number, group)]
            yield pa.Table.from_arrays([*told, *where, pc.add(found, row)], schema=_PLACE)
            row += part.num_rows


def _may_hold(group: Any, asked: RowPredicate) -> bool:
    """Whether a row group may match, by its column statistics (minimum and maximum)."""
    for column in (group.column(place) for place in range(group.num_columns)):
        name, known = column.path_in_schema, column.statistics
        if known is None or not known.has_min_max:
            continue
        if name == "ended_at" and not (known.min < asked.end and known.max >= asked.begin):
            return False
        if name in asked.equal and not _may_equal(known, asked.equal[name]):
            return False
        if name in asked.unequal and known.min == known.max and known.min in asked.unequal[name]:
            return False
        if name in asked.between and not _meet(asked.between[name], known):
            return False
    return True


def _may_equal(known: Any, value: Any) -> bool:
    """A cut name in figures stands for longer names, which sort after it."""
    return bool(known.min <= value <= known.max or (_is_beginning(value) and known.min.startswith(value)))


def _is_beginning(value: Any) -> bool:
    return isinstance(value, str) and name_limits.may_be_cut(value)


def _meet(limits: tuple[int, int | None], known: Any) -> bool:
    least, most = limits
    return bool(known.max >= least and (most is None or known.min <= most))


def _wanted(part: Any, asked: RowPredicate) -> Any:
    ended = part["ended_at"]
    begin, end = (pa.scalar(instant, ended.type) for instant in (asked.begin, asked.end))
    wanted = pc.and_(pc.greater_equal(ended, begin), pc.less(ended, end))
    for name, value in asked.equal.items():
        wanted = pc.and_(wanted, _equal(part[name], value))
    for name, values in asked.unequal.items():
        for value in values:
            wanted = pc.and_(wanted, pc.not_equal(part[name], value))
    for name, (least, most) in asked.between.items():
        wanted = pc.and_(wanted, pc.greater_equal(part[name], least))
        wanted = wanted if most is None else pc.and_(wanted, pc.less_equal(part[name], most))
    return wanted


def _equal(column: Any, value: Any) -> Any:
    """Files hold names whole: a cut name matches every longer name that begins with it."""
    same = pc.equal(column, value)
    if not _is_beginning(value):
        return same
    longer = pc.greater(pc.binary_length(column), name_limits.BYTES)
    return pc.or_(same, pc.and_(longer, pc.starts_with(column, value)))


def _newest(table: Any, most: int) -> Any:
    return table if table.num_rows <= most else table.take(pc.select_k_unstable(table, most, _NEWEST))


def _rows(paths: list[str], places: Any, part: str) -> list[dict[str, Any]]:
    wanted: dict[tuple[int, int], set[int]] = {}
    for place in places.to_pylist():
        wanted.setdefault((place["file"], place["group"]), set()).add(place["row"])
    found = [row for (file, group), rows in wanted.items() for row in _read(paths[file], group, rows, part)]
    found.sort(key=lambda row: (row["ended_at"], row["seq"]), reverse=True)
    return [{name: _plain(value) for name, value in row.items()} for row in found]


def _read(path: str, group: int, rows: set[int], of: str) -> Iterator[dict[str, Any]]:
    columns, size = _COLUMNS[of], _ROWS if of == "listed" else _WHOLE_ROWS
    first = 0
    for part in ParquetFile(path).iter_batches(size, [group], list(columns)):
        chosen = [row - first for row in sorted(rows) if first <= row < first + part.num_rows]
        yield from part.take(pa.array(chosen, pa.int64())).to_pylist()
        first += part.num_rows
        if first > max(rows):
            return


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    known: dict[str, Callable[..., Any]] = {"messages": answer, "events": events}
    json.dump(known[sys.argv[1]](**json.load(sys.stdin)), sys.stdout)
