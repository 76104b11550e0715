"""Preview of an operation: its frozen set by queue, type, cause and age, samples, and what a person confirms."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgqueue_admin.console.operations import edit_form, labels, plan_form
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.services import content_access, purges, unattended
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import edits, queries, redirects
from pgqueue_admin.services.operations.queries import Causes, ChangedState, RetryTargets
from pgqueue_admin.transport.wire.type_names import short_type

SAMPLES = 10
_SPLITS = 5


@dataclass(frozen=True, slots=True)
class PreviewSplit:
    """One line of the set's composition."""

    label: str
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class OperationPreview:
    """``queues``: how many messages go to each, by canonical address; of a retry by present rules."""

    queues: dict[str, int]
    splits: list[PreviewSplit]
    samples: Sequence[Any]
    changed: ChangedState
    targets: RetryTargets | None
    without_receiver: list[unattended.UnattendedQueue]
    oldest_at: datetime | None
    newest_at: datetime | None
    kept: list[str]
    removed: list[str]
    staging: plan_form.PlanForm
    causes: Causes | None = None
    edit: edit_form.ShownLook | None = None  # None if this person may not see it


def read(connection: Connection, operation: Operation, person: Any, asked: Mapping[str, str]) -> OperationPreview:
    """``asked``: the plan that the address or the form names."""
    if operation.kind == Operation.Kind.PURGE:
        return _of_purge(connection, operation, person, asked)
    parts = queries.made_of(connection, operation.pk)
    whole = next(part for part in parts if part.what == "all")
    samples = queries.samples(connection, operation, SAMPLES)
    retry = operation.kind == Operation.Kind.RETRY
    targets = queries.retry_targets(connection, operation, redirects.rules()) if retry else None
    kept, removed = queries.header_changes(connection, samples) if retry else ([], [])
    queues = targets.counts if targets and targets.ruled else operation.queues
    return OperationPreview(
        queues,
        _splits(operation, queues, parts),
        samples,
        queries.changed(connection, operation),
        targets,
        unattended.without_receiver(queues) if targets else [],
        whole.oldest_at,
        whole.newest_at,
        kept,
        removed,
        plan_form.offered(connection, operation, person, asked),
        queries.causes(connection, operation) if retry else None,
        _edit(connection, operation, content_access.of(person)),
    )


def _edit(connection: Connection, operation: Operation, access: ContentAccess) -> edit_form.ShownLook | None:
    kept = edits.of(operation)
    if kept is None or access.hides_edited(kept.edit.part, kept.edit.name):
        return None
    return edit_form.looked(connection, operation, kept.edit, access)


def _of_purge(connection: Connection, operation: Operation, person: Any, asked: Mapping[str, str]) -> OperationPreview:
    """Messages to purge are in no archive yet: only their count and an upper bound are known."""
    gone = ChangedState(purges.left_since(connection, operation), None)
    staging = plan_form.offered(connection, operation, person, asked)
    splits = _splits(operation, operation.queues, [])
    return OperationPreview(operation.queues, splits, [], gone, None, [], None, None, [], [], staging)


def _splits(operation: Operation, queues: Mapping[str, int], parts: Sequence[Any]) -> list[PreviewSplit]:
    where = "Into" if operation.kind == Operation.Kind.RETRY else "Of"
    said = labels.tables(queues)
    return [
        *_most(where, _added_up((said[address], count) for address, count in queues.items())),
        *_most("Type", _named(parts, "type")),
        *_most("Died of", _named(parts, "cause")),
    ]


def _named(parts: Sequence[Any], what: str) -> Counter[str]:
    found = (part for part in parts if part.what == what)
    return _added_up((short_type(part.name or "") or "unknown", part.count) for part in found)


def _added_up(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Added up by the name that the page shows, which several may share."""
    found: Counter[str] = Counter()
    for name, count in counts:
        found[name] += count
    return found


def _most(label: str, counted: Counter[str]) -> list[PreviewSplit]:
    shown = [PreviewSplit(label, value, count) for value, count in counted.most_common(_SPLITS)]
    rest = sum(counted.values()) - sum(split.count for split in shown)
    return [*shown, PreviewSplit(label, f"{len(counted) - _SPLITS} more", rest)] if rest else shown
