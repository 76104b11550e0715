"""Retry, discard, restore: what a person decides about dead messages, each guarded by the message's state (C4)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from pgqueue_admin.archive import lease_retry, schema_columns
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, Outcome, RetriedFrom, target_of, why_no_retry
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h

Ids = Sequence[int]
Asked = Callable[[Address], bool]
Tokens = Mapping[int, UUID]  # by archive id
Judge = Callable[[Connection, Collection[Address]], Mapping[Address, str]]  # why not, by those that are not written to

_STATE_WORDS = {
    "dead": "was restored {}",
    "retried": "was retried {}",
    "succeeded": "was retried {} and succeeded",
    "dead_again": "was retried {} and died again, as another archived message",
    "discarded": "was discarded {}",
}


def retry(
    connection: Connection,
    ids: Ids,
    who: str,
    operation: int | None = None,
    *,
    ours: Asked = lambda address: False,
    judge: Judge = lambda connection, targets: {},
) -> list[Outcome]:
    """Put dead messages back into the queues they failed in, as one transaction with the marks.

    Off come the five failure prefixes; message id and body stay, the row id is new, nothing expires. ``ours`` says
    which queues are woken and told which archived message it was (RETRIED_FROM); ``judge`` which are not written to.
    A lease message is inserted as it was.
    """
    with connection.transaction():
        held = hold(connection, ids)
        outcomes = {row.id: refused(row, "dead") or unfit(row) for row in held}
        meant = _by_target([row for row in held if outcomes[row.id] is None])
        why_not = judge(connection, meant.keys())
        for target in meant.keys() & why_not.keys():
            outcomes |= {row.id: Outcome(row.id, "failed", why_not[target]) for row in meant.pop(target)}
        leases = [row.id for row in meant.pop(LEASE_QUEUE, [])]
        tokens = new_tokens(connection, [row.id for target in filter(ours, meant) for row in meant[target]])
        for target, rows in meant.items():
            outcomes |= _put_back(connection, target, rows, tokens)
        if leases:
            outcomes |= lease_retry.put_back(connection, leases)
        tell_with_commit(connection, postgresql(), filter(ours, meant))
        mark_retried(connection, outcomes, tokens, who, operation)
    return _in_order(ids, outcomes)


def discard(connection: Connection, ids: Ids, who: str, operation: int | None = None) -> list[Outcome]:
    """Lay dead messages aside. They are kept, and restore brings them back."""
    return _decide(connection, ids, who, operation, state="dead", became="discarded", verb="discarded")


def restore(connection: Connection, ids: Ids, who: str, operation: int | None = None) -> list[Outcome]:
    """Make discarded messages dead again, ready to be retried."""
    return _decide(connection, ids, who, operation, state="discarded", became=None, verb="restored")


def _decide(
    connection: Connection, ids: Ids, who: str, operation: int | None, *, state: str, became: str | None, verb: str
) -> list[Outcome]:
    with connection.transaction():
        held = hold(connection, ids)
        outcomes = {row.id: refused(row, state) or Outcome(row.id, "done") for row in held}
        _mark(connection, outcomes, state, became, verb, who, operation)
    return _in_order(ids, outcomes)


def hold(connection: Connection, ids: Ids) -> list[Any]:
    return connection.all(_sql().hold(is_queue=_sql().is_queue), {"ids": list(ids)})


def refused(row: Any, state: str) -> Outcome | None:
    """Somebody was quicker, or it was never in the state that the act is for."""
    if row.state == state:
        return None
    if not row.became_by:
        why = "It is dead, not discarded." if row.state == "dead" else "It did not die."
        return Outcome(row.id, "skipped", why)
    when = f"by {row.became_by} {at_utc(row.became_at)}"
    return Outcome(row.id, "skipped", f"It {_STATE_WORDS[row.state].format(when)}.", row.became_by, row.became_at)


def at_utc(when: datetime) -> str:
    """As it stands in a reason, which is kept for readers in all zones."""
    return f"at {when.astimezone(UTC):%Y-%m-%d %H:%M:%S %Z}"


def unfit(row: Any) -> Outcome | None:
    """What becomes of a dead message that can be put into no queue, whichever it names; None: it can."""
    why = why_no_retry(row) or _unreadable(row.headers)
    return Outcome(row.id, "failed", why) if why else None


def _unreadable(headers: str | None) -> str | None:
    try:
        h.parse(headers)
    except h.HeadersUnreadable as error:
        return f"It cannot be retried: {error}."
    return None


def _by_target(rows: list[Any]) -> dict[Address, list[Any]]:
    found: dict[Address, list[Any]] = defaultdict(list)
    for row in rows:
        if target := target_of(row):
            found[target].append(row)
    return found


def new_tokens(connection: Connection, ids: Ids) -> dict[int, UUID]:
    """One for each that goes into a queue of ours: what nobody can know who has not read the message."""
    return {each: uuid4() for each in ids} if ids and schema_columns.has(connection, "retry_token") else {}


def _put_back(connection: Connection, target: Address, rows: list[Any], tokens: Tokens) -> dict[int, Outcome]:
    """A queue that refuses fails its own messages and nobody else's."""
    ids, name = [row.id for row in rows], postgresql().canonical(target)
    row_ids = {each: uuid4() for each in ids}
    try:
        with connection.transaction():
            headers = [retried_headers(row.headers, row.id, tokens.get(row.id)) for row in rows]
            put = {"ids": ids, "row_ids": list(row_ids.values()), "headers": headers}
            taken = connection.run(_sql().put_back(table=target), put)
            if taken < len(ids):
                raise RowsDropped(f"It took {taken} of {len(ids)}, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return {each: Outcome(each, "failed", f"{name} did not take it: {error}") for each in ids}
    return {each: Outcome(each, "done", target=name, sent_as=str(row_id)) for each, row_id in row_ids.items()}


def kept_headers(text: str | None) -> h.Headers:
    """Those that a retry sends again: without the five prefixes and our marks. Raises HeadersUnreadable."""
    marks = {RETRIED_FROM, EDIT_OF}
    return {name: value for name, value in h.strip_failure(h.parse(text)).items() if name not in marks}


def retried_headers(text: str | None, archive_id: int, token: UUID | None) -> str:
    """The headers to send: without the five prefixes, and with our mark where there is a token for it."""
    return h.dump(kept_headers(text) | ({RETRIED_FROM: str(RetriedFrom(archive_id, token))} if token else {}))


def mark_retried(
    connection: Connection,
    outcomes: dict[int, Any],
    tokens: Tokens,
    who: str,
    operation: int | None,
    verb: str = "retried",
) -> None:
    if not schema_columns.has(connection, "retry_token"):
        return _mark(connection, outcomes, "dead", "retried", verb, who, operation)
    done = _done(outcomes)
    given = {"ids": list(done), "tokens": [tokens.get(each) for each in done], "who": who, "operation": operation}
    if done:
        connection.run(_sql().mark_retried(), given)
        _note(connection, done, verb, who, operation)


def _mark(
    connection: Connection,
    outcomes: dict[int, Any],
    state: str,
    became: str | None,
    verb: str,
    who: str,
    operation: int | None,
) -> None:
    done = _done(outcomes)
    if done:
        act = {"ids": list(done), "who": who, "operation": operation}
        connection.run(_sql().mark(), {**act, "state": state, "became": became})
        _note(connection, done, verb, who, operation)


def _done(outcomes: dict[int, Any]) -> dict[int, str | None]:
    """By archive id where it was put."""
    return {each: outcome.target for each, outcome in outcomes.items() if outcome.result == "done"}


def _note(connection: Connection, done: dict[int, str | None], verb: str, who: str, operation: int | None) -> None:
    act = {"ids": list(done), "who": who, "operation": operation}
    connection.run(_sql().note(), {**act, "verb": verb, "targets": list(done.values())})


def _in_order(ids: Ids, outcomes: dict[int, Any]) -> list[Outcome]:
    missing = "It is no longer in the archive."
    return [outcomes.get(each) or Outcome(each, "failed", missing) for each in dict.fromkeys(ids)]


def _sql() -> Any:
    return postgresql().archive
