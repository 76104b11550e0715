"""What an operation would do: its frozen set by queue, type, cause and age, samples, and what is asked first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgqueue_admin.archive import store
from pgqueue_admin.console import operation_words
from pgqueue_admin.console.board import receivers
from pgqueue_admin.console.reading import long_headers
from pgqueue_admin.dialects import Connection
from pgqueue_admin.operations import service
from pgqueue_admin.operations.looking import Changed, Targets
from pgqueue_admin.records.models import Operation
from pgqueue_admin.transport.wire.headers import EXCEPTION_INFO, FAILURE_PREFIXES, short_type
from pgqueue_admin.wording import header_parts
from pgqueue_admin.wording.figures import counted

SAMPLES = 10
_SPLITS = 5


@dataclass(frozen=True, slots=True)
class Split:
    """One line of what is in the set."""

    label: str
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Preview:
    splits: list[Split]
    samples: Sequence[Any]
    changed: Changed
    targets: Targets | None
    untended: list[receivers.Untended]
    oldest_at: datetime | None
    newest_at: datetime | None
    kept: list[str]
    removed: list[str]


def read(connection: Connection, operation: Operation) -> Preview:
    parts = service.made_of(connection, operation.pk)
    whole = next(part for part in parts if part.what == "all")
    samples = service.samples(connection, operation, SAMPLES)
    retry = operation.kind == Operation.Kind.RETRY
    kept, removed = _headers(connection, samples) if retry else ([], [])
    return Preview(
        _splits(operation, parts),
        samples,
        service.changed(connection, operation),
        service.targets(connection, operation) if retry else None,
        receivers.untended(operation.queues) if retry else [],
        whole.oldest_at,
        whole.newest_at,
        kept,
        removed,
    )


def _splits(operation: Operation, parts: Sequence[Any]) -> list[Split]:
    where = "Into" if operation.kind == Operation.Kind.RETRY else "Of"
    said = operation_words.tables(operation.queues)
    return [
        *_most(where, _added_up((said[address], count) for address, count in operation.queues.items())),
        *_most("Type", _named(parts, "type")),
        *_most("Died of", _named(parts, "cause")),
    ]


def _named(parts: Sequence[Any], what: str) -> Counter[str]:
    found = (part for part in parts if part.what == what)
    return _added_up((short_type(part.name or "") or "unknown", part.count) for part in found)


def _added_up(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """By the name that the page shows, which several may share."""
    found: Counter[str] = Counter()
    for name, count in counts:
        found[name] += count
    return found


def _most(label: str, counted: Counter[str]) -> list[Split]:
    shown = [Split(label, value, count) for value, count in counted.most_common(_SPLITS)]
    rest = sum(counted.values()) - sum(split.count for split in shown)
    return [*shown, Split(label, f"{len(counted) - _SPLITS} more", rest)] if rest else shown


def _headers(connection: Connection, samples: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Of the first sample: which headers a retry keeps, and which it takes off."""
    message = store.show(connection, samples[0].archive_id) if samples else None
    if message is None:
        return [], []
    headers, _ = long_headers.read(message.headers, message.headers_length)
    kept, removed = header_parts.kept_and_removed(headers, FAILURE_PREFIXES)
    return kept, _folded(removed)


def _folded(names: list[str]) -> list[str]:
    """The many headers of one exception in one line."""
    told = [name for name in names if not name.startswith(EXCEPTION_INFO)]
    count = len(names) - len(told)
    return [*told, f"{EXCEPTION_INFO}* ({counted(count, 'header')})"] if count else told
