"""Retry, discard and restore dead messages, each guarded by the message's state (C4)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID, uuid4

from pgqueue_admin.archive import crossings, lease_retry, schema_columns
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, Outcome, RetriedFrom, target_of, why_no_retry
from pgqueue_admin.archive.row_ids import row_ids
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h

Ids = Sequence[int]
Asked = Callable[[Address], bool]
Tokens = Mapping[int, UUID]  # by archive id
Judge = Callable[[Connection, Collection[Address]], Mapping[Address, str]]  # why a target is not written to


EDITED = "edited and retried"
ONLY_QUEUES = "Only messages of queues can be edited."
MOVED = "It goes into another queue than a moment ago, of a database that was not asked: retry it once more."


class Editing(Protocol):
    """Edits messages on their way (edited_retry.ManyEdits)."""

    def put(self, connection: Connection, target: Address, rows: list[Any], tokens: Tokens) -> dict[int, Outcome]:
        """Insert the changed messages into a queue of this database."""

    def put_leases(self, connection: Connection, rows: list[Any]) -> dict[int, Outcome]:
        """Likewise, into the lease queue."""

    def composed(
        self, connection: Connection, rows: Sequence[Any]
    ) -> tuple[dict[int, tuple[str, bytes | None]], dict[int, Outcome]]:
        """By archive id the headers and the body to send, None: unchanged; and the outcomes of unchanged messages."""


class Redirect(NamedTuple):
    """Where a message goes instead of its failed queue. ``blocking_reason``: a sentence; then it is skipped."""

    target: Address | None
    blocking_reason: str = ""


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
    redirect: Callable[[Any], Redirect | None] = lambda row: None,
    restores: bool = False,
    edited: Editing | None = None,
) -> list[Outcome]:
    """Put dead messages back into the queues they failed in, in one transaction with the marks.

    The five failure prefixes are removed; message id and body stay, the row id is new, nothing expires. ``ours``:
    queues whose receivers are notified and get the archived message's mark (RETRIED_FROM). ``judge``: queues that are
    not written to. ``redirect``: messages that go elsewhere. ``restores``: retries discarded messages, which restores
    them. ``edited``: sends them changed, as new messages (edited_retry). Messages for another database only start a
    crossing (archive.crossings): they have no outcome yet, nor have those that another worker of this operation sent.
    Other databases are queried before messages are locked, so that nobody waits on these locks for an answer that may
    never come.
    """
    state = "discarded" if restores else "dead"
    asked = _asked_elsewhere(connection, ids, state, judge, redirect)
    with connection.transaction():
        rows = hold(connection, ids)
        away = {row.id for row in rows if row.crossing and operation and operation == row.crossing_operation}
        held = [row for row in rows if row.id not in away]
        elsewhere = {row.id: found for row in held if (found := redirect(row))}
        outcomes = {row.id: _blocking_reason(row, state, elsewhere.get(row.id)) for row in held}
        meant = _by_target([row for row in held if outcomes[row.id] is None], elsewhere)
        over = {target: meant.pop(target) for target in list(meant) if database_alias.alias_of(target)}
        outcomes |= _refused_into(meant, judge(connection, meant.keys()))
        outcomes |= _refused_into(over, {target: asked.get(target, MOVED) for target in over})
        unchanged = _set_out(connection, over, elsewhere.keys(), who, operation, restores, edited)
        outcomes |= unchanged
        away |= {row.id for those in over.values() for row in those} - unchanged.keys()
        outcomes = {each: outcome for each, outcome in outcomes.items() if each not in away}
        leases = meant.pop(LEASE_QUEUE, [])
        tokens = new_tokens(connection, [row.id for target in filter(ours, meant) for row in meant[target]])
        for target, those in meant.items():
            put = (edited.put if edited else _put_back)(connection, target, those, tokens)
            retarget(connection, target, [each for each in elsewhere if each in put and put[each].result == "done"])
            outcomes |= put
        if leases:
            outcomes |= _put_leases(connection, leases, edited)
        tell_with_commit(connection, postgresql(), filter(ours, meant))
        if restores:
            mark_restored(connection, outcomes, who, operation)
        mark_retried(connection, outcomes, tokens, who, operation, EDITED if edited else "retried")
    return _in_order([each for each in ids if each not in away], outcomes)


def _asked_elsewhere(
    connection: Connection, ids: Ids, state: str, judge: Judge, redirect: Callable[[Any], Redirect | None]
) -> Mapping[Address, str]:
    """Why queues of other databases that these messages seem to go to are not written to; empty: they are."""
    rows = connection.all(_sql().headed_for(), {"ids": list(ids), "state": state})
    goals = {found.target if (found := redirect(row)) else target_of(row) for row in rows}
    targets = [goal for goal in goals if goal and database_alias.alias_of(goal)]
    refused = judge(connection, targets) if targets else {}
    return {target: refused.get(target, "") for target in targets}


def _set_out(
    connection: Connection,
    over: Mapping[Address, list[Any]],
    redirected: Collection[int],
    who: str,
    operation: int | None,
    restores: bool,
    edited: Editing | None,
) -> dict[int, Outcome]:
    """Start crossings into other databases. Return the outcomes of messages that the edit leaves unchanged: not
    sent."""
    if edited is None:
        crossings.put_back(connection, over, redirected, who, operation, restores)
        return {}
    changed, unchanged = edited.composed(connection, [row for those in over.values() for row in those])
    going = {target: [row for row in those if row.id in changed] for target, those in over.items()}
    going = {target: those for target, those in going.items() if those}
    crossings.put_back(connection, going, redirected, who, operation, restores)
    crossings.put_edited(connection, changed)
    return unchanged


def _refused_into(meant: dict[Address, list[Any]], blocking_reasons: Mapping[Address, str]) -> dict[int, Outcome]:
    """Remove refused targets from ``meant`` and fail their messages. ``blocking_reasons`` empty: not refused."""
    refused = [target for target in meant if blocking_reasons.get(target)]
    return {
        row.id: Outcome(row.id, "failed", blocking_reasons[target]) for target in refused for row in meant.pop(target)
    }


def discard(connection: Connection, ids: Ids, who: str, operation: int | None = None) -> list[Outcome]:
    """Set dead messages aside. They are kept, and restore brings them back."""
    return _decide(connection, ids, who, operation, state="dead", resolution="discarded", verb="discarded")


def restore(connection: Connection, ids: Ids, who: str, operation: int | None = None) -> list[Outcome]:
    """Make discarded messages dead again, ready to be retried."""
    return _decide(connection, ids, who, operation, state="discarded", resolution=None, verb="restored")


def _decide(
    connection: Connection, ids: Ids, who: str, operation: int | None, *, state: str, resolution: str | None, verb: str
) -> list[Outcome]:
    with connection.transaction():
        held = hold(connection, ids)
        outcomes = {row.id: refused(row, state) or Outcome(row.id, "done") for row in held}
        _mark(connection, outcomes, state, resolution, verb, who, operation)
    return _in_order(ids, outcomes)


def hold(connection: Connection, ids: Ids) -> list[Any]:
    if crossings.are_kept(connection):
        connection.run(_sql().lock(), {"ids": list(ids)})
    statement = _sql().hold(is_queue=_sql().is_queue, **crossings.on_their_way(connection))
    return connection.all(statement, {"ids": list(ids)})


def refused(row: Any, state: str) -> Outcome | None:
    """The skipped outcome of a message in a crossing, or in another state than the act needs; None: neither."""
    if row.crossing:
        return Outcome(row.id, "skipped", crossings.why_held(row))
    if row.state == state:
        return None
    if not row.resolved_by:
        lies_dead = "It is dead, not discarded." if state == "discarded" else "It is dead."
        why = lies_dead if row.state == "dead" else "It did not die."
        return Outcome(row.id, "skipped", why)
    when = f"by {row.resolved_by} {at_utc(row.resolved_at)}"
    return Outcome(row.id, "skipped", f"It {_STATE_WORDS[row.state].format(when)}.", row.resolved_by, row.resolved_at)


def at_utc(when: datetime) -> str:
    """UTC, because the reason is kept for readers in all time zones."""
    return f"at {when.astimezone(UTC):%Y-%m-%d %H:%M:%S %Z}"


def _blocking_reason(row: Any, state: str, elsewhere: Redirect | None) -> Outcome | None:
    if found := refused(row, state):
        return found
    if elsewhere and elsewhere.blocking_reason:
        return Outcome(row.id, "skipped", elsewhere.blocking_reason)
    return unfit(row, is_redirected=elsewhere is not None)


def retarget(connection: Connection, target: Address, ids: Ids) -> None:
    """Record the actual target: its outcome is reported from there."""
    if ids:
        connection.run(_sql().retarget(), {"ids": ids, **target._asdict()})


def unfit(row: Any, *, is_redirected: bool = False) -> Outcome | None:
    """The failure of a dead message that no queue can take; None if it can be sent."""
    why = why_no_retry(row, is_redirected=is_redirected) or _unreadable(row.headers)
    return Outcome(row.id, "failed", why) if why else None


def _unreadable(headers: str | None) -> str | None:
    try:
        h.parse(headers)
    except h.HeadersUnreadable as error:
        return f"It cannot be retried: {error}."
    return None


def _by_target(rows: list[Any], elsewhere: Mapping[int, Redirect]) -> dict[Address, list[Any]]:
    found: dict[Address, list[Any]] = defaultdict(list)
    for row in rows:
        if target := elsewhere[row.id].target if row.id in elsewhere else target_of(row):
            found[target].append(row)
    return found


def new_tokens(connection: Connection, ids: Ids) -> dict[int, UUID]:
    """A token per message sent to a queue of ours: only readers of the message can know it."""
    return {each: uuid4() for each in ids} if ids and schema_columns.has(connection, "retry_token") else {}


def _put_back(connection: Connection, target: Address, rows: list[Any], tokens: Tokens) -> dict[int, Outcome]:
    """If the queue refuses, only its own messages fail."""
    ids, name = [row.id for row in rows], postgresql().canonical(target)
    sent_as = dict(zip(ids, row_ids(len(ids)), strict=True))
    try:
        with connection.transaction():
            headers = [retried_headers(row.headers, row.id, tokens.get(row.id)) for row in rows]
            put = {"ids": ids, "row_ids": list(sent_as.values()), "headers": headers}
            taken = connection.run(_sql().put_back(table=target), put)
            if taken < len(ids):
                raise RowsDropped(f"It took {taken} of {len(ids)}, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return {each: Outcome(each, "failed", f"{name} did not take it: {error}") for each in ids}
    return {each: Outcome(each, "done", target=name, sent_as=row_id) for each, row_id in sent_as.items()}


def _put_leases(connection: Connection, rows: list[Any], edited: Editing | None) -> dict[int, Outcome]:
    if edited:
        return edited.put_leases(connection, rows)
    return lease_retry.put_back(connection, [row.id for row in rows])


def kept_headers(text: str | None) -> h.Headers:
    """The headers a retry sends: without the five prefixes and our marks. Raises HeadersUnreadable."""
    marks = {RETRIED_FROM, EDIT_OF}
    return {name: value for name, value in h.strip_failure(h.parse(text)).items() if name not in marks}


def retried_headers(text: str | None, archive_id: int, token: UUID | None) -> str:
    """The headers to send: without the five prefixes, with our mark if there is a token."""
    return h.dump(kept_headers(text) | ({RETRIED_FROM: str(RetriedFrom(archive_id, token))} if token else {}))


def mark_restored(connection: Connection, outcomes: dict[int, Any], who: str, operation: int | None) -> None:
    _mark(connection, outcomes, "discarded", None, "restored", who, operation)


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
    resolution: str | None,
    verb: str,
    who: str,
    operation: int | None,
) -> None:
    done = _done(outcomes)
    if done:
        act = {"ids": list(done), "who": who, "operation": operation}
        connection.run(_sql().mark(), {**act, "state": state, "resolution": resolution})
        _note(connection, done, verb, who, operation)


def _done(outcomes: dict[int, Any]) -> dict[int, str | None]:
    """The target of each done message, by archive id."""
    return {each: outcome.target for each, outcome in outcomes.items() if outcome.result == "done"}


def _note(connection: Connection, done: dict[int, str | None], verb: str, who: str, operation: int | None) -> None:
    act = {"ids": list(done), "who": who, "operation": operation}
    connection.run(_sql().note(), {**act, "verb": verb, "targets": list(done.values())})


def _in_order(ids: Ids, outcomes: dict[int, Any]) -> list[Outcome]:
    missing = "It is no longer in the archive."
    return [outcomes.get(each) or Outcome(each, "failed", missing) for each in dict.fromkeys(ids)]


def _sql() -> Any:
    return postgresql().archive
