"""What an operation's page shows: its frozen set, what it would do, what it did, what became of it since."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pgqueue_admin.archive import long_headers, store
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting import header_parts
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.operations.targets import Chosen, Target, judge, parsed
from pgqueue_admin.transport.wire.headers import EXCEPTION_INFO, FAILURE_PREFIXES


class ChangedState(NamedTuple):
    """Frozen messages that somebody else has acted on since, and one of those people."""

    number: int
    who: str | None


@dataclass(frozen=True, slots=True)
class CurrentState:
    """How many of a set are in a state. ``of_this``: of these, what this operation did, and nobody decided on since."""

    state: str
    count: int
    of_this: int


MOST_TOLD = 20  # targets of one sort, by name


class Counted(NamedTuple):
    """A target, and how many of the set it is for."""

    target: Target
    messages: int


@dataclass(frozen=True, slots=True)
class Targets:
    """``unfit``: how many can be put nowhere, whatever is there. ``chosen``: by name, beside the input queues."""

    all: list[Counted]
    unfit: int
    chosen: Chosen

    @property
    def lost(self) -> int:
        """Messages that stay dead, whatever is chosen."""
        return self.unfit + sum(each.messages for each in self.refused)

    @property
    def refused(self) -> list[Counted]:
        """Nothing is put there, whoever asks for it."""
        return [each for each in self.all if each.target.why_not]

    @property
    def to_choose(self) -> list[Counted]:
        """No input queues: a person may choose them by name."""
        return [each for each in self.all if each.target.other and not each.target.why_not]

    @property
    def running(self) -> list[Counted]:
        """Where code of others would run."""
        return [each for each in self.all if each.target.runs and not each.target.why_not]


def items(connection: Connection, pk: int, after: int = 0, outcome: str = "", limit: int = 50) -> list[Any]:
    """A page of the set, after a place in it: rows of place, archive_id, queue, outcome, why, state, message_type, …

    ``outcome``: done, skipped, failed, open for what is not acted on yet; or what came of what is done: retried (and
    not heard of since), succeeded, dead_again.
    """
    asked = {"operation_id": pk, "after": after, "outcome": outcome or None, "limit": limit}
    return connection.all(postgresql().operation.items(), asked)


def started_here(numbers: Iterable[int | None]) -> set[int]:
    """Those that are this console's: in the archive stand those of all consoles, and each counts for itself."""
    asked = {number for number in numbers if number}
    return set(Operation.objects.filter(pk__in=asked).exclude(started_at=None).values_list("pk", flat=True))


def samples(connection: Connection, operation: Operation, number: int) -> list[Any]:
    """The oldest of the set, the newest, and others at equal steps between them."""
    last = max(1, operation.count)
    steps = max(1, min(number, last) - 1)
    places = sorted({1 + round(step * (last - 1) / steps) for step in range(steps + 1)})
    return connection.all(postgresql().operation.samples(), {"operation_id": operation.pk, "places": places})


def header_changes(connection: Connection, samples: Sequence[Any]) -> tuple[list[str], list[str]]:
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
    return [*told, f"{EXCEPTION_INFO}* ({pluralize(count, 'header')})"] if count else told


def not_done(connection: Connection, pk: int) -> list[Any]:
    """Every message of the set that was not acted on, with why."""
    return connection.all(postgresql().operation.not_done(), {"operation_id": pk})


def made_of(connection: Connection, pk: int) -> list[Any]:
    """What the set is made of: rows of what (all, type, cause), name, count, oldest_at, newest_at."""
    return connection.all(postgresql().operation.made_of(), {"operation_id": pk})


def states(connection: Connection, pk: int) -> list[CurrentState]:
    """What the messages are now: dead, retried, succeeded, dead_again, discarded, gone."""
    return [CurrentState(*row) for row in connection.all(postgresql().operation.states(), {"operation_id": pk})]


def changed(connection: Connection, operation: Operation) -> ChangedState:
    """Of what this operation has not acted on, that to which it can no longer be done."""
    asked = {"operation_id": operation.pk, "state": kind_of(operation.kind).state}
    return ChangedState(*(connection.one(postgresql().operation.changed(), asked) or (0, None)))


def retry_targets(connection: Connection, operation: Operation) -> Targets:
    """Where a retry of the set would put what it can, by the judge that the act asks."""
    rows = connection.all(postgresql().operation.set_targets(), {"operation_id": operation.pk})
    counts = {Address(row.schema, row.table): row.count for row in rows if row.table is not None}
    judged = judge(connection, counts)
    unfit = sum(row.count for row in rows if row.table is None)
    return Targets([Counted(judged[each], count) for each, count in counts.items()], unfit, parsed(operation.targets))
