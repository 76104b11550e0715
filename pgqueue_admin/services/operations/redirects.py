"""Applies retry rules: which message is sent elsewhere, and whether it may be. The first fitting rule counts."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pgqueue_admin.archive.dead_messages import Redirect
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.models import Operation, Queue, RetryRule
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services.operations.targets import Target, judge, parsed


class Rule(NamedTuple):
    """A rule as an operation stores it. ``queue`` and ``target``: canonical addresses."""

    number: int
    message_type: str
    queue: str
    target: str

    def fits(self, message_type: str | None, queue: str | None) -> bool:
        if self.queue and self.queue != queue:
            return False
        return not self.message_type or matches(self.message_type, message_type or "")

    @property
    def address(self) -> Address | None:
        return next(iter(parsed([self.target])), None)


def matches(pattern: str, text: str) -> bool:
    """Match a pattern; ``*`` stands for any text. Each part is sought once, without backtracking: senders choose the
    text.
    """
    start, *parts = pattern.split("*")
    if not parts:
        return text == pattern
    *between, end = parts
    at, last = len(start), len(text) - len(end)
    if last < at or not (text.startswith(start) and text.endswith(end)):
        return False
    for part in between:
        found = text.find(part, at, last)
        if found < 0:
            return False
        at = found + len(part)
    return True


def rules() -> list[Rule]:
    """Return the present rules, oldest first; none for people of some queues: a rule may name any queue."""
    if visible_queues.current() is not None:
        return []
    return [Rule(*row) for row in RetryRule.objects.values_list("pk", "message_type", "queue", "target")]


def of(operation: Operation) -> list[Rule]:
    """Return the rules as the person who started the operation saw them."""
    return [Rule(*row) for row in operation.rules]


def first(rules: Iterable[Rule], message_type: str | None, queue: str | None) -> Rule | None:
    """Return the rule that redirects a message; None also if the first fitting one was not chosen."""
    found = next((each for each in rules if each.fits(message_type, queue)), None)
    return found if found and found.target else None


def applies(message_type: str | None, queue: str | None) -> bool:
    return first(rules(), message_type, queue) is not None


class Destination(NamedTuple):
    """A rule's target as all retries judge it; None: no address.
    ``blocking_reason``: why no rule sends there; empty: it is a known, writable input queue.
    """

    target: Target | None
    blocking_reason: str


def destination(connection: Connection, address: Address | None) -> Destination:
    if address is None:
        return Destination(None, "Its target is no queue address.")
    judged = judge(connection, [address])[address]
    if why := judged.refusal():
        return Destination(judged, why)
    known = Queue.objects.filter(schema=address.schema, table=address.table, kind=TableKind.INPUT, gone_since=None)
    return Destination(judged, "" if known.exists() else f"{address.table} is no known input queue.")


def blocking_reason(connection: Connection, address: Address | None) -> str:
    return destination(connection, address).blocking_reason


def redirect_with(connection: Connection, rules: list[Rule]) -> Callable[[Any], Redirect | None]:
    """Return the redirect of a retry; targets are judged once."""
    targets = {each.number: each.address for each in rules if each.target}
    if not targets:
        return lambda row: None
    refused = {number: blocking_reason(connection, target) for number, target in targets.items()}

    def redirect(row: Any) -> Redirect | None:
        rule = first(rules, row.message_type, row.queue) if row.kind == "transport" else None
        if rule is None:
            return None
        why = refused[rule.number]
        return Redirect(targets[rule.number], f"Rule {rule.number} sends it elsewhere: {why}" if why else "")

    return redirect
