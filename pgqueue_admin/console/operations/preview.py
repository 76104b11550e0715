"""What an operation would do: its frozen set by queue, type, cause and age, samples, and what is asked first."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgqueue_admin.console.operations import labels, plan_form
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.services import operations, unattended
from pgqueue_admin.services.operations.queries import ChangedState, Targets
from pgqueue_admin.transport.wire.headers import short_type

SAMPLES = 10
_SPLITS = 5


@dataclass(frozen=True, slots=True)
class PreviewSplit:
    """One line of what is in the set."""

    label: str
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class OperationPreview:
    splits: list[PreviewSplit]
    samples: Sequence[Any]
    changed: ChangedState
    targets: Targets | None
    untended: list[unattended.UnattendedQueue]
    oldest_at: datetime | None
    newest_at: datetime | None
    kept: list[str]
    removed: list[str]
    staging: plan_form.PlanForm


def read(connection: Connection, operation: Operation, person: Any, asked: Mapping[str, str]) -> OperationPreview:
    """``asked``: what the address or the form says of the plan."""
    parts = operations.made_of(connection, operation.pk)
    whole = next(part for part in parts if part.what == "all")
    samples = operations.samples(connection, operation, SAMPLES)
    retry = operation.kind == Operation.Kind.RETRY
    kept, removed = operations.header_changes(connection, samples) if retry else ([], [])
    return OperationPreview(
        _splits(operation, parts),
        samples,
        operations.changed(connection, operation),
        operations.retry_targets(connection, operation) if retry else None,
        unattended.untended(operation.queues) if retry else [],
        whole.oldest_at,
        whole.newest_at,
        kept,
        removed,
        plan_form.offered(connection, operation, person, asked),
    )


def _splits(operation: Operation, parts: Sequence[Any]) -> list[PreviewSplit]:
    where = "Into" if operation.kind == Operation.Kind.RETRY else "Of"
    said = labels.tables(operation.queues)
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


def _most(label: str, counted: Counter[str]) -> list[PreviewSplit]:
    shown = [PreviewSplit(label, value, count) for value, count in counted.most_common(_SPLITS)]
    rest = sum(counted.values()) - sum(split.count for split in shown)
    return [*shown, PreviewSplit(label, f"{len(counted) - _SPLITS} more", rest)] if rest else shown
