"""Rules that retry dead lease messages automatically: create, remove and apply them. Each act is audited."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.archive import lease_rules
from pgqueue_admin.archive.lease_rules import LONGEST_WAIT, RESULTS, LeaseRule, RuleDone, RuledRetry
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import redirects
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.targets import judge, judge_with
from pgqueue_admin.services.permissions import name_of, refusal_for

NOUN = "lease rule"
WHO = "lease rules"
ANY = "any kind"
MOST_TIMES = 20
_LONGEST_TYPE = 400
_AT_ONCE = 100
_NOTHING = "Nothing was changed"
_OLDER = "the engine's tables are of a version before rules of the lease queue: run manage.py engine_schema"


@dataclass(frozen=True)
class RuleDraft:
    """A rule as typed; fields as in ``lease_rules.LeaseRule``."""

    message_type: str
    results: tuple[str, ...]
    times: int
    wait_seconds: int


def create(draft: RuleDraft, person: Any, origin: str, reason: str = "") -> int:
    """Create a rule for messages that die from now on; return its number. Raises OperationRefused, DatabaseError."""
    _allow(person)
    facts = _facts(_checked(draft))
    about = {"verb": "create", "subject": draft.message_type or ANY, "after": facts}
    with (
        queue_database().write_session() as connection,
        audited(**about, **_about(person, origin, reason)) as act,
    ):
        _insist(connection)
        if why := blocking_reason(connection):
            raise OperationRefused(f"{_NOTHING}. {why}")
        number = lease_rules.create(connection, facts, name_of(person), reason)
        if number is None:
            raise AlreadyDecided(f"{_NOTHING}: there is a rule for just that. Remove it first.")
        act.done = 1
        act.note(rule=number)
    return number


def remove(number: int, person: Any, origin: str, reason: str = "") -> RuleDraft:
    """Remove a rule and return it. Messages that waited for it stay dead. Raises OperationRefused, DatabaseError."""
    _allow(person)
    with queue_database().write_session() as connection:
        _insist(connection)
        rule = next((each for each in lease_rules.rules(connection) if each.id == number), None)
        if rule is None:
            raise AlreadyDecided(f"{_NOTHING}: lease rule {number} is there no more.")
        was = RuleDraft(rule.message_type, tuple(rule.results), rule.times, rule.wait_seconds)
        about = {"verb": "remove", "subject": rule.message_type or ANY, "before": {**_facts(was), "rule": number}}
        with audited(**about, **_about(person, origin, reason)) as act:
            act.done = int(lease_rules.remove(connection, number))
    return was


def all_rules(connection: Connection) -> list[LeaseRule]:
    """Return all rules; none for people of some queues only, or if the tables are of an older version."""
    if visible_queues.current() is not None or not lease_rules.are_there(connection):
        return []
    return lease_rules.rules(connection)


def done(connection: Connection) -> dict[int, RuleDone]:
    return lease_rules.done(connection)


def blocking_reason(connection: Connection) -> str:
    """Why rules would retry nothing now; empty: they would."""
    return judge(connection, [QUEUE])[QUEUE].refusal()


def runs(connection: Connection) -> tuple[str, ...]:
    """Code of other roles that runs with each message put back."""
    return judge(connection, [QUEUE])[QUEUE].runs


def due_in(answer_seconds: float) -> float | None:
    """Return the seconds until a rule may have work; None: none is expected. Raises DatabaseError."""
    with queue_database().write_session(answer_seconds) as connection:
        return lease_rules.due_in(connection) if lease_rules.are_there(connection) else None


def apply(seconds: float) -> int:
    """Retry due messages in batches, a transaction each, for so many seconds; return how many. Raises DatabaseError."""
    deadline, done = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        looked_at, retried = _apply_some()
        done += retried
        if looked_at < _AT_ONCE:
            break
    return done


def _apply_some() -> tuple[int, int]:
    about = {"who": WHO, "origin": "rule", "noun": "message", "subject": queue_database().dialect.canonical(QUEUE)}
    with queue_database().write_session(settings.PGQUEUE["ANSWER_SECONDS"]) as connection:
        if not _is_due(connection):
            return 0, 0
        with audited(verb="retry", **about) as act:
            found = lease_rules.apply(connection, _AT_ONCE, _fits, judge_with(()))
            act.done = sum(each.outcome.result == "done" for each in found.retried)
            act.note(**_after(found.retried))
    return found.looked_at, act.done


def _is_due(connection: Connection) -> bool:
    """Checked first, as this runs each minute: with nothing due, no audit intent is written."""
    due_in = lease_rules.due_in(connection) if lease_rules.are_there(connection) else None
    return due_in is not None and due_in <= 0


def _fits(rule: LeaseRule, message_type: str) -> bool:
    return not rule.message_type or redirects.matches(rule.message_type, message_type)


def _after(retried: Iterable[RuledRetry]) -> dict[str, Any]:
    done = [each for each in retried if each.outcome.result == "done"]
    by_rule: dict[str, list[int]] = {}
    for each in done:
        by_rule.setdefault(str(each.rule.id), []).append(each.outcome.archive_id)
    return {"rules": by_rule}


def _checked(draft: RuleDraft) -> RuleDraft:
    kind = draft.message_type
    if len(kind) > _LONGEST_TYPE or any(not each.isprintable() for each in kind):
        raise OperationRefused(f"{_NOTHING}: that is no kind of message. Type one such as render, or render.*.")
    if not draft.results or not set(draft.results) <= set(RESULTS):
        raise OperationRefused(f"{_NOTHING}: choose at least one of the endings: {', '.join(RESULTS)}.")
    if not 1 <= draft.times <= MOST_TIMES:
        raise OperationRefused(f"{_NOTHING}: between 1 and {MOST_TIMES} retries.")
    if not 1 <= draft.wait_seconds <= LONGEST_WAIT:
        raise OperationRefused(f"{_NOTHING}: the first wait is between 1 second and a day ({LONGEST_WAIT:,} s).")
    return draft


def _allow(person: Any) -> None:
    if refusal := refusal_for(person, "set"):
        raise OperationNotAllowed(f"{_NOTHING}: {refusal}.")


def _insist(connection: Connection) -> None:
    if not lease_rules.are_there(connection):
        raise OperationRefused(f"{_NOTHING}: {_OLDER}.")


def _facts(draft: RuleDraft) -> dict[str, Any]:
    return {**asdict(draft), "results": list(draft.results)}


def _about(person: Any, origin: str, reason: str) -> dict[str, Any]:
    return {"who": name_of(person), "noun": NOUN, "origin": origin, "reason": reason}
