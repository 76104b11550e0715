"""Dead lease messages that are retried by themselves: by the first rule that fits, so many times, ever later."""

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
GIVEN_UP_AFTER = timedelta(days=1)  # past its time, of what the queue refuses again and again
CAP = 10_000
_REFUSED = timedelta(minutes=1)
_PRUNED = 1_000
_ALONE = 1.0  # seconds


class LeaseRule(NamedTuple):
    """``message_type``: * stands for anything, empty: any. ``results``: of RESULTS. ``wait_seconds``: before the first
    retry; each later wait is twice the one before, a day at most.
    """

    id: int
    message_type: str
    results: Sequence[str]
    times: int
    wait_seconds: int
    who: str
    reason: str
    created_at: datetime

    def wait(self, nth: int) -> timedelta:
        """Before the ``nth`` retry, from the death on."""
        return timedelta(seconds=min(self.wait_seconds * 2 ** (nth - 1), LONGEST_WAIT))

    @property
    def name(self) -> str:
        return f"lease rule {self.id}"


Fits = Callable[[LeaseRule, str], bool]  # whether a rule's pattern fits a message's kind


class RuleDone(NamedTuple):
    """In the last 31 days: how many it put back, at most one more than CAP, and when the last."""

    number: int
    last_at: datetime | None


class RuledRetry(NamedTuple):
    """``nth``: which retry in a row it was. ``outcome``: as of any retry."""

    rule: LeaseRule
    nth: int
    outcome: Outcome


class RulesApplied(NamedTuple):
    """``looked_at``: fewer than were asked for: nothing more is due."""

    looked_at: int
    retried: list[RuledRetry]


def are_there(connection: Connection) -> bool:
    """False where the engine's tables are missing, or of a version before."""
    return schema_columns.has(connection, "wait_seconds", "lease_rule")


def rules(connection: Connection) -> list[LeaseRule]:
    return [LeaseRule(*row) for row in connection.all(_sql().rules())]


def done(connection: Connection) -> dict[int, RuleDone]:
    """By rule."""
    return {row.id: RuleDone(row.number, row.last_at) for row in connection.all(_sql().rules_done(), {"cap": CAP})}


def create(connection: Connection, about: dict[str, Any], who: str, reason: str) -> int | None:
    """Its number; None: there is one for just that kind of message."""
    row = connection.one(_sql().create_rule(), {**about, "who": who, "reason": reason})
    return row.id if row else None


def remove(connection: Connection, number: int) -> bool:
    """False: it was gone."""
    return connection.one(_sql().remove_rule(), {"id": number}) is not None


def due_in(connection: Connection) -> float | None:
    """In how many seconds one is to be looked at; None: nothing is kept."""
    found: float | None = connection.value(_sql().due_in())
    return found


def apply(connection: Connection, most: int, fits: Fits, judge: Judge) -> RulesApplied:
    """Look at up to ``most`` of the dead whose time has come, in one transaction, and put back what a rule fits.

    Whoever dies with them in hand has done nothing: they are looked at again. Two at once share them.
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
    """Those that are gone from the archive, or that nobody has in hand there. The others are looked at later."""
    held = {row.id for row in connection.all(_sql().hold_dead(), {"ids": [row.archive_id for row in due]})}
    busy = [row for row in due if row.state is not None and row.archive_id not in held]
    later = {"ids": [row.archive_id for row in busy], "times": [row.now + _REFUSED for row in busy]}
    connection.run(_sql().look_again(), later)
    return [row for row in due if row not in busy]


class _Decision(NamedTuple):
    """Of a dead message: ``rule`` None leaves it dead; else it goes back at ``at``, as the ``nth`` time."""

    archive_id: int
    rule: LeaseRule | None
    nth: int
    at: datetime
    now: datetime

    @property
    def is_due(self) -> bool:
        return self.rule is not None and self.at <= self.now


def _first(known: list[LeaseRule], row: Any, fits: Fits) -> LeaseRule | None:
    """For what is still dead, was not ended by a person, and of which it is told which message it was."""
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
    """What the queue refuses fails all that are put back with it: then each is tried alone, as far as there is time."""
    ends_at = time.monotonic() + _ALONE
    outcomes = dead_messages.retry(connection, ids, who, judge=judge)
    refused = [each.archive_id for each in outcomes if each.result == "failed"]
    alone: dict[int, Outcome] = {}
    for one in refused if len(refused) > 1 else ():
        if time.monotonic() < ends_at:
            (alone[one],) = dead_messages.retry(connection, [one], who, judge=judge)
    return [alone.get(each.archive_id, each) for each in outcomes]


def _settle(connection: Connection, decided: list[_Decision], retried: dict[int, RuledRetry]) -> None:
    """Forget what is done with, and say when to look at the others."""
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
    """What the queue has refused is tried again for a day; what somebody else has decided meanwhile is his."""
    if decision.rule is None:
        return None
    if not decision.is_due:
        return decision.at
    if retried and retried.outcome.result == "failed" and decision.now < decision.at + GIVEN_UP_AFTER:
        return decision.now + max(decision.rule.wait(decision.nth), _REFUSED)
    return None


def _sql() -> Any:
    return postgresql().lease_rules
