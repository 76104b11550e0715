"""Data of an operation's page: its frozen set, what it would do, what it did, and the outcomes since."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Manager

from pgqueue_admin.archive import fingerprints, long_headers, store
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting import header_parts
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Operation, PostedMark, database_clock
from pgqueue_admin.services.operations import redirects
from pgqueue_admin.services.operations.kinds import state_for
from pgqueue_admin.services.operations.targets import Chosen, Target, judge, parsed
from pgqueue_admin.transport.wire.headers import EXCEPTION_INFO, FAILURE_PREFIXES


class ChangedState(NamedTuple):
    """Frozen messages that others have acted on since, and the name of one of them."""

    number: int
    who: str | None


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Messages of a set in a state. ``of_this``: those that this operation acted on last."""

    state: str
    count: int
    of_this: int


MOST_TOLD = 20  # targets of one sort listed by name


class TargetCount(NamedTuple):
    """A target, and the number of messages for it."""

    target: Target
    messages: int


class RuleCount(NamedTuple):
    """A rule, and the number of messages that it redirects, or that are skipped if it cannot."""

    rule: redirects.Rule
    messages: int
    to: redirects.Destination

    @property
    def blocking_reason(self) -> str:
        return self.to.blocking_reason


@dataclass(frozen=True, slots=True)
class RetryTargets:
    """``unfit``: messages that fit no queue at all. ``chosen``: targets named beside the input queues.
    ``all``: targets of messages that no rule redirects.
    """

    all: list[TargetCount]
    unfit: int
    chosen: Chosen
    ruled: list[RuleCount]
    count: int  # messages of the set that nobody has acted on

    @property
    def counts(self) -> dict[str, int]:
        """Messages by canonical address, also of queues that rules name."""
        found = Counter({each.target.name: each.messages for each in self.all})
        for ruled in self.ruled:
            found[ruled.rule.target] += ruled.messages
        return dict(found)

    @property
    def lost(self) -> int:
        """Messages that stay dead, whichever targets are chosen."""
        return self.unfit + sum(each.messages for each in self.refused)

    @property
    def refused(self) -> list[TargetCount]:
        """Targets that accept no messages, whoever asks."""
        return [each for each in self.all if each.target.blocking_reason]

    @property
    def to_choose(self) -> list[TargetCount]:
        """Targets that are no input queues: a person may choose them by name."""
        return [each for each in self.all if each.target.other and not each.target.blocking_reason]

    @property
    def running(self) -> list[TargetCount]:
        """Targets where code of other roles would run, each table once, whether a rule or a message names it."""
        own = [each for each in self.all if not each.target.blocking_reason]
        sent = [
            TargetCount(each.to.target, each.messages)
            for each in self.ruled
            if each.to.target and not each.blocking_reason
        ]
        return list({each.target.name: each for each in (*sent, *own) if each.target.runs}.values())


def items(connection: Connection, pk: int, after: int = 0, outcome: str = "", limit: int = 50) -> list[Any]:
    """Return a page of the set after a position: rows of position, archive_id, queue, outcome, why, state, …

    ``outcome``: done, skipped, failed, open for not acted on yet; or the outcome of what is done: retried (no news
    since), succeeded, dead_again.
    """
    asked = {"operation_id": pk, "after": after, "outcome": outcome or None, "limit": limit}
    return connection.all(postgresql().operation.items(), asked)


def started_here(numbers: Iterable[int | None]) -> set[int]:
    """Return those that this console started and that may be seen: the archive has operations of all consoles."""
    return _started(Operation.objects, numbers)


def counted_here(numbers: Iterable[int | None]) -> set[int]:
    """Return those that this console started, visible or not: a change by anybody must reach their figures."""
    return _started(Operation._base_manager, numbers)


def _started(operations: Manager[Operation], numbers: Iterable[int | None]) -> set[int]:
    asked = {number for number in numbers if number}
    return set(operations.filter(pk__in=asked).exclude(started_at=None).values_list("pk", flat=True))


def samples(connection: Connection, operation: Operation, number: int) -> list[Any]:
    """Return the oldest of the set, the newest, and others at equal steps between them."""
    last = max(1, operation.count)
    steps = max(1, min(number, last) - 1)
    positions = sorted({1 + round(step * (last - 1) / steps) for step in range(steps + 1)})
    return connection.all(postgresql().operation.samples(), {"operation_id": operation.pk, "positions": positions})


def header_changes(connection: Connection, samples: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Return which headers of the first sample a retry keeps, and which it removes."""
    message = store.show(connection, samples[0].archive_id) if samples else None
    if message is None:
        return [], []
    headers, _ = long_headers.read(message.headers, message.headers_length)
    kept, removed = header_parts.kept_and_removed(headers, FAILURE_PREFIXES)
    return kept, _folded(removed)


def _folded(names: list[str]) -> list[str]:
    """Fold the many headers of one exception into one line."""
    told = [name for name in names if not name.startswith(EXCEPTION_INFO)]
    count = len(names) - len(told)
    return [*told, f"{EXCEPTION_INFO}* ({pluralize(count, 'header')})"] if count else told


def not_done(connection: Connection, pk: int) -> list[Any]:
    """Return every message of the set that was not acted on, with the reason."""
    return connection.all(postgresql().operation.not_done(), {"operation_id": pk})


def made_of(connection: Connection, pk: int) -> list[Any]:
    """Return what the set consists of: rows of what (all, type, cause), name, count, oldest_at, newest_at."""
    return connection.all(postgresql().operation.made_of(), {"operation_id": pk})


def states(connection: Connection, pk: int) -> list[CurrentState]:
    """Return the current states of the messages: dead, retried, succeeded, dead_again, discarded, gone."""
    return [CurrentState(*row) for row in connection.all(postgresql().operation.states(), {"operation_id": pk})]


class Causes(NamedTuple):
    """Deaths by the set's causes: within an hour, and since the newest mark, if any.
    ``last_at``: of the newest death.
    """

    fingerprints: list[str]
    in_an_hour: int
    since_mark: int
    last_at: datetime | None
    mark: PostedMark | None


MOST_CAUSES = 20
MARKED_LATELY = timedelta(days=1)


def causes(connection: Connection, operation: Operation) -> Causes | None:
    """Return the causes; None if they are not known yet, if the engine's tables have no fingerprints, or for people of
    some queues: a cause occurs in any queue.
    """
    if not fingerprints.are_kept(connection) or visible_queues.current() is not None:
        return None
    lately = database_clock.now() - MARKED_LATELY
    mark = PostedMark.objects.filter(at__gt=lately, at__lte=database_clock.now()).first()
    asked = {"operation_id": operation.pk, "most": MOST_CAUSES, "mark_at": mark.at if mark else None}
    row = connection.one(postgresql().operation.causes(), asked)
    if row is None or not row.fingerprints:
        return None
    return Causes(row.fingerprints, row.in_an_hour, row.since_mark, row.last_at, mark)


def changed(connection: Connection, operation: Operation) -> ChangedState:
    """Count messages not yet acted on whose state no longer allows the operation."""
    asked = {"operation_id": operation.pk, "state": state_for(operation)}
    return ChangedState(*(connection.one(postgresql().operation.changed(), asked) or (0, None)))


def retry_targets(connection: Connection, operation: Operation, rules: Sequence[redirects.Rule] = ()) -> RetryTargets:
    """Return where a retry would put the set under these rules, by the check that the act uses."""
    asked = {"operation_id": operation.pk, "state": state_for(operation)}
    rows = connection.all(postgresql().operation.set_targets(), asked)
    counts, by_rule, unfit = Counter[Address](), Counter[redirects.Rule](), 0
    for row in rows:
        rule = redirects.first(rules, row.message_type, row.queue) if row.kind == "transport" else None
        if not row.is_fit or (not rule and row.table is None):
            unfit += row.count
        elif rule:
            by_rule[rule] += row.count
        else:
            counts[Address(row.schema, row.table)] += row.count
    judged = judge(connection, counts)
    all_of_them = [TargetCount(judged[each], count) for each, count in counts.most_common()]
    ruled = [RuleCount(each, count, redirects.destination(connection, each.address)) for each, count in by_rule.items()]
    return RetryTargets(all_of_them, unfit, parsed(operation.targets), ruled, sum(row.count for row in rows))
