"""Call back: move a retry's messages that still wait in their queue back to their archive rows, in one transaction.

For messages in another database this only starts a crossing (archive.crossings), as a retry into one does.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import crossings, dead_messages, held_row
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql

VERB = "called back"
MOVED = "moved"
PICKED_UP = "Somebody has received it, or has it in flight: it stays sent."
CHANGED = "What waits in its queue is not what was sent: it stays there."
_NOT_KEPT = "Its row id is not known, so it cannot be found among others in its queue."


class CallBackAct(NamedTuple):
    """Who takes messages back and what they become. ``resolution`` None: dead. ``verb``: as written to the archive's
    events."""

    who: str
    verb: str = VERB
    resolution: str | None = None
    operation: int | None = None

    @property
    def why(self) -> str:
        """The reason that the retry's item shows from now on."""
        number = f", operation {self.operation}" if self.operation else ""
        return f"{self.verb.capitalize()} by {self.who}{number}, while it waited."


class SentRow(NamedTuple):
    """A queue row that a retry may have sent. ``message_id``: the archived message's; ``token``: the retry token that
    the row carries."""

    queue: Address
    row_id: UUID
    message_id: str | None
    token: UUID | None


Judge = Callable[[Connection, Collection[Address]], Mapping[Address, str]]  # queues of other databases: why not


def call_back(
    connection: Connection,
    ids: Sequence[int],
    who: str,
    operation: int,
    judge: Judge = lambda connection, targets: {},
) -> list[Outcome]:
    """Make sent messages dead again, by archive id. Never waits for a receiver: a message in flight stays sent. Raises
    DatabaseDown, Deadlock; an error of one queue fails only its own messages.

    Messages that start a crossing have no outcome yet, nor have those that another worker of this operation handles.
    """
    with connection.transaction():
        here, over = list[Any](), list[Any]()
        for row in sent_by_ids(connection, ids):
            (over if database_alias.alias_of(_target(row)) else here).append(row)
        refused = _set_out(connection, over, who, operation, judge)
        away = {row.id for row in over} - refused.keys()
        outcomes = refused | take_back(connection, here, CallBackAct(who, operation=operation))
        others = [each for each in ids if each not in outcomes and each not in away]
        held = dead_messages.hold(connection, others)
        away |= {row.id for row in held if row.crossing and row.crossing_operation == operation}
        outcomes |= {row.id: _other(row) for row in held if row.id not in away}
    missing = "It is no longer in the archive."
    asked = [each for each in dict.fromkeys(ids) if each not in away]
    return [outcomes.get(each) or Outcome(each, "failed", missing) for each in asked]


def _set_out(connection: Connection, rows: Sequence[Any], who: str, operation: int, judge: Judge) -> dict[int, Outcome]:
    """Start crossings back into the archive. The other databases are queried before any lock is taken. Return the
    outcomes of messages that cannot cross."""
    if not rows:
        return {}
    by_target = _by_target(rows)
    reasons = judge(connection, by_target.keys())
    outcomes = {row.id: Outcome(row.id, "failed", why) for each, why in reasons.items() for row in by_target[each]}
    held = dead_messages.hold(connection, [row.id for row in rows if row.id not in outcomes])
    outcomes |= {row.id: found for row in held if (found := dead_messages.refused(row, "retried"))}
    going = {row.id for row in held if row.id not in outcomes}
    meant = {target: [row for row in sent if row.id in going] for target, sent in by_target.items()}
    crossings.take_back(connection, {target: sent for target, sent in meant.items() if sent}, who, operation)
    return outcomes


def back_from_there(connection: Connection, ids: Sequence[int], back: CallBackAct) -> None:
    """In the caller's transaction: make dead again what has left the queues of another database."""
    dead_messages.hold(connection, ids)
    rows = connection.all(_sql().of_crossing(), {"ids": list(ids)})
    connection.run(_sql().back_from_there(), {"ids": list(ids), "operation": back.operation})
    for target, sent in _by_target(rows).items():
        _note_back(connection, target, sent, back)


def sent_by_ids(connection: Connection, ids: Sequence[int]) -> list[Any]:
    """These archived messages with the rows that their retries sent, for ``take_back``."""
    return connection.all(_sql().sent(which=_sql().of_ids), {"ids": list(ids)})


def sent_as_rows(connection: Connection, queue: Address, rows: Mapping[UUID, str]) -> list[Any]:
    """The archived messages whose retry sent one of these waiting rows (row id → message id), for ``take_back``."""
    asked = {"target": postgresql().canonical(queue), "message_ids": list(rows.values())}
    return connection.all(_sql().sent(which=_sql().of_rows), {**asked, "row_ids": list(map(str, rows))})


def note_not_sent(connection: Connection, sent: Sequence[Any], back: CallBackAct) -> None:
    """In the caller's transaction: note on the retry's items that nobody received these messages (``sent_as_rows``).
    What became of them is recorded in another archive row."""
    about = {"ids": [row.id for row in sent], "operations": [row.operation for row in sent]}
    if sent:
        connection.run(_sql().not_sent(), {**about, "why": back.why, "who": back.who})


def note_moved(connection: Connection, sent: SentRow, target: Address, who: str) -> None:
    """In the caller's transaction: the row moved into another queue, where its retry looks for it from now on."""
    queues = {
        "source": postgresql().canonical(sent.queue),
        "target": postgresql().canonical(target),
        **target._asdict(),
    }
    about = {"message_id": sent.message_id, "token": sent.token, "row_id": str(sent.row_id)}
    connection.run(_sql().moved_on(), {**about, **queues, "who": who, "verb": MOVED})


def take_back(connection: Connection, sent: Sequence[Any], back: CallBackAct) -> dict[int, Outcome]:
    """In the caller's transaction: delete the waiting rows and restore their archive rows. Outcomes by archive id:
    done, skipped or failed with the reason."""
    outcomes: dict[int, Outcome] = {}
    for target, rows in _by_target(sent).items():
        outcomes |= _of_queue(connection, target, rows, back)
    return outcomes


def _by_target(rows: Sequence[Any]) -> Mapping[Address, list[Any]]:
    found: dict[Address, list[Any]] = defaultdict(list)
    for row in rows:
        found[_target(row)].append(row)
    return found


def _target(row: Any) -> Address:
    return postgresql().parse_address(row.target)


def _of_queue(connection: Connection, target: Address, rows: list[Any], back: CallBackAct) -> dict[int, Outcome]:
    name = postgresql().canonical(target)
    try:
        with connection.transaction():
            with held_row.only_tables(connection, target):
                is_lease = target == LEASE_QUEUE
                outcomes, places = _hold_leases(connection, rows) if is_lease else _hold(connection, target, rows)
            return outcomes | _take(connection, target, [row for row in rows if row.id in places], places, back)
    except (DatabaseDown, Deadlock):
        raise
    except held_row.NotMovable as error:
        return _all(rows, "failed", str(error))
    except DatabaseError as error:
        return _all(rows, "failed", f"{name} did not give it back: {error}")


Places = dict[int, Any]  # by archive id, of rows that are held


def _hold(connection: Connection, target: Address, rows: list[Any]) -> tuple[dict[int, Outcome], Places]:
    asked = {"ids": [row.id for row in rows], "row_ids": [UUID(row.sent_as) for row in rows]}
    held = {row.archive_id: row for row in connection.all(_sql().waiting(table=target), asked)}
    same = {row.id for row in rows if row.id in held and _is_same(row, held[row.id])}
    outcomes = _all([row for row in rows if row.id not in held], "skipped", PICKED_UP)
    outcomes |= _all([row for row in rows if row.id in held.keys() - same], "failed", CHANGED)
    return outcomes, {each: held[each] for each in same}


def _is_same(sent: Any, held: Any) -> bool:
    """Whether the waiting row equals what the retry sent, byte for byte: message id, token, headers and body."""
    return bool(held.same_body) and held.headers == dead_messages.retried_headers(
        sent.headers, sent.id, sent.retry_token
    )


def _hold_leases(connection: Connection, rows: list[Any]) -> tuple[dict[int, Outcome], Places]:
    held = {row.archive_id: row for row in connection.all(_sql().waiting_lease(), {"ids": [row.id for row in rows]})}
    return _all([row for row in rows if row.id not in held], "skipped", PICKED_UP), held


def _take(
    connection: Connection, target: Address, rows: list[Any], places: Places, back: CallBackAct
) -> dict[int, Outcome]:
    """Lock archive rows last, as a receiver does: locked earlier, they would make a receiver wait."""
    if not rows:
        return {}
    ids = [row.id for row in rows]
    decided = {
        row.id: refused
        for row in dead_messages.hold(connection, ids)
        if (refused := dead_messages.refused(row, "retried"))
    }
    ids = [each for each in ids if each not in decided]
    taken = _delete(connection, target, ids, places)
    put = {"ids": ids, "resolution": back.resolution, "resolved_by": back.who if back.resolution else None}
    if taken != len(ids) or connection.run(_sql().back(), {**put, "operation": back.operation}) != len(ids):
        raise RowsDropped(f"It gave back {taken} of {len(ids)}, and that was undone.")
    _note_back(connection, target, [row for row in rows if row.id not in decided], back)
    name = postgresql().canonical(target)
    return decided | {each: Outcome(each, "done", target=name) for each in ids}


def _note_back(connection: Connection, target: Address, rows: list[Any], back: CallBackAct) -> None:
    """Update the retry's items, the messages' home queues and their events."""
    ids, name = [row.id for row in rows], postgresql().canonical(target)
    about = {"ids": ids, "operations": [row.operation for row in rows]}
    connection.run(_sql().not_sent(), {**about, "why": back.why, "who": back.who})
    _home(connection, rows)
    event = {"ids": ids, "targets": [name] * len(ids), "who": back.who, "verb": back.verb, "operation": back.operation}
    connection.run(postgresql().archive.note(), event)


def _home(connection: Connection, rows: list[Any]) -> None:
    """Retarget messages that a rule had redirected to the queue where they died."""
    for queue in {row.queue for row in rows if row.kind == "transport" and row.queue and row.queue != row.target}:
        ids = [row.id for row in rows if row.queue == queue]
        connection.run(postgresql().archive.retarget(), {"ids": ids, **postgresql().parse_address(queue)._asdict()})


def _delete(connection: Connection, target: Address, ids: list[int], places: Places) -> int:
    if target == LEASE_QUEUE:
        return connection.run(_sql().take_back_lease(), {"ids": ids})
    held = {"parts": [places[each].part for each in ids], "places": [places[each].place for each in ids]}
    return connection.run(_sql().take_back(table=target), held)


def _other(row: Any) -> Outcome:
    return dead_messages.refused(row, "retried") or Outcome(row.id, "failed", _NOT_KEPT)


def _all(rows: Sequence[Any], result: str, why: str) -> dict[int, Outcome]:
    return {row.id: Outcome(row.id, result, why) for row in rows}


def _sql() -> Any:
    return postgresql().call_back
