"""Retries dead lease messages automatically: by the first matching rule, a limited number of times, with backoff."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pgqueue_admin.archive import dead_messages, schema_columns
from pgqueue_admin.archive.dead_messages import Judge
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

RESULTS = ("failed", "lock_expired", "rejected")
LONGEST_WAIT = 86_400  # seconds
GIVEN_UP_AFTER = timedelta(days=1)  # after its due time, if the queue keeps refusing it
CAP = 10_000
_REFUSED = timedelta(minutes=1)
_PRUNED = 1_000
_ALONE = 1.0  # seconds


class LeaseRule(NamedTuple):
    """``message_type``: a pattern with *; empty: any. ``results``: a subset of RESULTS. ``wait_seconds``: before the
    first retry; each later wait doubles, up to a day."""

    id: int
    message_type: str
    results: Sequence[str]
    times: int
    wait_seconds: int
    who: str
    reason: str
    created_at: datetime

    def wait(self, nth: int) -> timedelta:
        """The time from death to the ``nth`` retry."""
        return timedelta(seconds=min(self.wait_seconds * 2 ** (nth - 1), LONGEST_WAIT))

    @property
    def name(self) -> str:
        return f"lease rule {self.id}"


Fits = Callable[[LeaseRule, str], bool]  # whether a rule's pattern matches a message's kind


class RuleDone(NamedTuple):
    """Messages put back in the last 31 days, counted to CAP plus one, and the time of the last."""

    number: int
    last_at: datetime | None


class RuledRetry(NamedTuple):
    """``nth``: the number of this retry. ``outcome``: as of any retry."""

    rule: LeaseRule
    nth: int
    outcome: Outcome


class RulesApplied(NamedTuple):
    """``looked_at``: if less than requested, nothing more is due."""

    looked_at: int
    retried: list[RuledRetry]


def are_there(connection: Connection) -> bool:
    """False if the engine's tables are missing or too old."""
    return schema_columns.has(connection, "wait_seconds", "lease_rule")


def rules(connection: Connection) -> list[LeaseRule]:
    return [LeaseRule(*row) for row in connection.all(_sql().rules())]


def done(connection: Connection) -> dict[int, RuleDone]:
    """By rule id."""
    return {row.id: RuleDone(row.number, row.last_at) for row in connection.all(_sql().rules_done(), {"cap": CAP})}


def create(connection: Connection, about: dict[str, Any], who: str, reason: str) -> int | None:
    """Its id; None if a rule for exactly that message type exists."""
    row = connection.one(_sql().create_rule(), {**about, "who": who, "reason": reason})
    return row.id if row else None


def remove(connection: Connection, number: int) -> bool:
    """False if it did not exist."""
    return connection.one(_sql().remove_rule(), {"id": number}) is not None


def due_in(connection: Connection) -> float | None:
    """Seconds until the next message is due; None if none waits."""
    found: float | None = connection.value(_sql().due_in())
    return found


def apply(connection: Connection, most: int, fits: Fits, judge: Judge) -> RulesApplied:
    """Check up to ``most`` due dead messages in one transaction, and put back those that a rule matches.

    If the process dies, nothing has changed and they are checked again. Two processes at once share them.
    """
    with connection.transaction():
        due = connection.all(_sql().hold_due(most=most))
        if not due:
            return RulesApplied(0, [])
        known = rules(connection)
        decided = [_decided(row, _first(known, row, fits)) for row in _free(connection, due)]
        retried = _retry(connection, [each for each in decided if each.is_due], judge)
        _settle(connection, decided, {each.outcome.archive_id: each for each in retried})
        connection.run(_sql().prune(most=_PRUNED))
    return RulesApplied(len(due), retried)


def _free(connection: Connection, due: list[Any]) -> list[Any]:
    """Messages gone from the archive or not locked there. Locked ones are checked later."""
    held = {row.id for row in connection.all(_sql().hold_dead(), {"ids": [row.archive_id for row in due]})}
    busy = [row for row in due if row.state is not None and row.archive_id not in held]
    later = {"ids": [row.archive_id for row in busy], "times": [row.now + _REFUSED for row in busy]}
    connection.run(_sql().look_again(), later)
    return [row for row in due if row not in busy]


class _Decision(NamedTuple):
    """For one dead message. ``rule`` None leaves it dead; otherwise it goes back at ``at`` as the ``nth`` retry."""

    archive_id: int
    rule: LeaseRule | None
    nth: int
    at: datetime
    now: datetime

    @property
    def is_due(self) -> bool:
        return self.rule is not None and self.at <= self.now


def _first(known: list[LeaseRule], row: Any, fits: Fits) -> LeaseRule | None:
    """The first matching rule, if the message is still dead, no person ended it, and its original id is known."""
    if row.state != "dead" or row.is_by_hand or not row.is_told:
        return None
    return next((each for each in known if row.result in each.results and fits(each, row.message_type or "")), None)


def _decided(row: Any, rule: LeaseRule | None) -> _Decision:
    nth = row.retried + 1
    if rule is None or nth > rule.times:
        return _Decision(row.archive_id, None, nth, row.now, row.now)
    return _Decision(row.archive_id, rule, nth, row.died_at + rule.wait(nth), row.now)


def _retry(connection: Connection, due: list[_Decision], judge: Judge) -> list[RuledRetry]:
    by_rule: dict[int, list[_Decision]] = defaultdict(list)
    for each in due:
        if each.rule:
            by_rule[each.rule.id].append(each)
    done: list[RuledRetry] = []
    for those in by_rule.values():
        rule, nths = those[0].rule, {each.archive_id: each.nth for each in those}
        assert rule
        outcomes = _put_back(connection, list(nths), rule.name, judge)
        done += [RuledRetry(rule, nths[each.archive_id], each) for each in outcomes]
    return done


def _put_back(connection: Connection, ids: list[int], who: str, judge: Judge) -> list[Outcome]:
    """One refused message fails all that are put back with it: then retry each alone while time remains."""
    ends_at = time.monotonic() + _ALONE
    outcomes = dead_messages.retry(connection, ids, who, judge=judge)
    refused = [each.archive_id for each in outcomes if each.result == "failed"]
    alone: dict[int, Outcome] = {}
    for one in refused if len(refused) > 1 else ():
        if time.monotonic() < ends_at:
            (alone[one],) = dead_messages.retry(connection, [one], who, judge=judge)
    return [alone.get(each.archive_id, each) for each in outcomes]


def _settle(connection: Connection, decided: list[_Decision], retried: dict[int, RuledRetry]) -> None:
    """Forget decided messages, and schedule the others' next check."""
    again = {each.archive_id: at for each in decided if (at := _again(each, retried.get(each.archive_id)))}
    connection.run(_sql().look_again(), {"ids": list(again), "times": list(again.values())})
    connection.run(_sql().forget(), {"ids": [each.archive_id for each in decided if each.archive_id not in again]})
    back = [each for each in retried.values() if each.outcome.result == "done"]
    noted = {
        "message_ids": [int(each.outcome.sent_as or 0) for each in back],
        "archive_ids": [each.outcome.archive_id for each in back],
        "rules": [each.rule.id for each in back],
        "nths": [each.nth for each in back],
    }
    connection.run(_sql().note_retries(), noted)


def _again(decision: _Decision, retried: RuledRetry | None) -> datetime | None:
    """When to try again: a refused message is retried for a day. None also if someone else decided meanwhile."""
    if decision.rule is None:
        return None
    if not decision.is_due:
        return decision.at
    if retried and retried.outcome.result == "failed" and decision.now < decision.at + GIVEN_UP_AFTER:
        return decision.now + max(decision.rule.wait(decision.nth), _REFUSED)
    return None


def _sql() -> Any:
    return postgresql().lease_rules
