"""What an operation would do: its frozen set by queue, type, cause and age, samples, and what is asked first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgqueue_admin.archive import store
from pgqueue_admin.console import operation_words
from pgqueue_admin.console.reading import long_headers
from pgqueue_admin.dialects import Connection
from pgqueue_admin.operations import service
from pgqueue_admin.operations.looking import Changed
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
    missing: list[str]
    oldest_at: datetime | None
    newest_at: datetime | None
    kept: list[str]
    removed: list[str]


def read(connection: Connection, operation: Operation) -> Preview:
    causes = service.causes(connection, operation.pk)
    samples = service.items(connection, operation.pk, limit=SAMPLES)
    retry = operation.kind == Operation.Kind.RETRY
    kept, removed = _headers(connection, samples) if retry else ([], [])
    return Preview(
        _splits(operation, causes),
        samples,
        service.changed(connection, operation),
        service.missing_targets(connection, operation.queues) if retry else [],
        min((row.oldest_at for row in causes), default=None),
        max((row.newest_at for row in causes), default=None),
        kept,
        removed,
    )


def _splits(operation: Operation, causes: Sequence[Any]) -> list[Split]:
    where = "Into" if operation.kind == Operation.Kind.RETRY else "Of"
    queues = Counter({operation_words.table_of(name): count for name, count in operation.queues.items()})
    return [
        *_most(where, queues),
        *_most("Type", _counted(causes, "message_type")),
        *_most("Died of", _counted(causes, "exception_type")),
    ]


def _counted(causes: Sequence[Any], name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in causes:
        found[short_type(getattr(row, name) or "") or "unknown"] += row.count
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
