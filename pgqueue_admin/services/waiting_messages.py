"""Acts on waiting messages as a person saw them: into the bin, to the dead, to another queue, or run now.

Each has its own transaction: messages in flight are left to their receivers, and no row lock is waited for.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.archive import held_row, move_to_archive, move_to_queue
from pgqueue_admin.archive.held_row import SeenRow, others_code
from pgqueue_admin.archive.move_to_archive import MoveReason
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TimedOut
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import QueueDatabase, database_of, queue_database
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import waiting_elsewhere
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import call_back
from pgqueue_admin.services.operations.acts_allowed import (
    carry_refusal,
    is_ours,
    table_of,
    why_foreign,
)
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.services.permissions import name_of, refusal_for
from pgqueue_admin.services.waiting_elsewhere import IN_HAND, ActOutcome

MOST = 50  # at once: one page of messages
TAKEN_OUT = "Its own program never sees a message that is taken out here, and is not notified."


@dataclass(frozen=True, slots=True)
class WaitingAct:
    """``done``: the participle for refusals and results. ``verb``: of the audit entry."""

    verb: str
    done: str
    of_delayed: bool = False


ACTS = {
    "discard": WaitingAct(verb="discard", done="discarded"),
    "move_out": WaitingAct(verb="move out", done="moved"),
    "move": WaitingAct(verb="move", done="moved"),
    "run_now": WaitingAct(verb="run delayed", done="sent on", of_delayed=True),
    "cancel": WaitingAct(verb="cancel delayed", done="cancelled", of_delayed=True),
}


def target_refusal(connection: Connection, source: Address, target: Address) -> str:
    """Why nothing is moved there; empty: it is allowed. ``connection``: to the first database."""
    if target == source:
        return f"They are in {target.table} already."
    if database_of(target) != database_of(source):
        return (
            f"{target.table} is in another database, and no commit spans two: move them to the dead, then retry them "
            "with a redirect."
        )
    judged = judge(connection, [target])[target]
    if why := judged.refusal() or others_code(judged.runs):
        return why
    known = Queue.objects.filter(schema=target.schema, table=target.table, kind=TableKind.INPUT, gone_since=None)
    return "" if known.exists() else f"{target.table} is no known input queue."


def act(
    name: str,
    address: Address,
    seen: Sequence[SeenRow],
    person: Any,
    origin: str,
    reason: str = "",
    target: Address | None = None,
) -> list[ActOutcome]:
    """Act on each message in the order given. Raises OperationRefused or DatabaseError: nothing was done to any then.
    ``target``: the destination of a *move*. A delayed message needs no ``queue``: the catalog names it.
    """
    kind = ACTS[name]
    nothing = f"Nothing was {kind.done}"
    if refusal := refusal_for(person, name):
        raise OperationNotAllowed(f"{nothing}: {refusal}.")
    if not 0 < len(seen) <= MOST:
        raise OperationRefused(f"{nothing}: between 1 and {MOST} messages can be acted on at once.")
    database = database_of(address)
    with queue_database().write_session() as connection:
        try:
            table = _table(connection, database, name, address, target)
        except OperationRefused as refused:
            raise OperationRefused(f"{nothing}. {refused}") from None
        if not database.alias:
            meant = [each._replace(queue=table.delayed_of) for each in seen]
            said = person, origin, reason, target
            return _audited(name, connection, meant, _doing(name, table, person, target), said)
    entry = {"before": _before(seen), **_about(name, person, origin, reason, seen[0].table)}
    goes_to = table.delayed_of if name == "run_now" else target
    return waiting_elsewhere.act(name, database, seen, name_of(person), goes_to, entry)


def _table(
    here: Connection, database: QueueDatabase, name: str, address: Address, target: Address | None
) -> QueueTable:
    """Return the table if the act is allowed there. Raises OperationRefused, DatabaseError."""
    with database.read_session(address) if database.alias else nullcontext(here) as there:
        table = table_of(there, address)
        if (table.kind is TableKind.DELAYED) != ACTS[name].of_delayed:
            raise OperationRefused(f"{address.table} is of another kind now.")
        why = why_foreign(table) or (carry_refusal(here, there, database) if database.alias else "")
    why = why or (target_refusal(here, address, target) if target else "")
    if name == "run_now" and table.delayed_of:
        why = why or others_code(judge(here, [table.delayed_of])[table.delayed_of].runs)
    if why or (name == "move" and target is None):
        raise OperationRefused(why or "Choose the queue that they go to.")
    return table


Do = Callable[[Connection, SeenRow], int | None]


def _doing(name: str, table: QueueTable, person: Any, target: Address | None) -> Do:
    who, own_code = name_of(person), tuple(settings.PGQUEUE["OWN_CODE"])
    goes_to = target or table.delayed_of
    wakes = is_ours(goes_to) if goes_to else False

    def discard(connection: Connection, seen: SeenRow) -> int:
        why = MoveReason(who, "", "", f"Discarded by {who} while it waited in {seen.table.table}.")
        return move_to_archive.discard(connection, seen, why, own_code)

    def move_out(connection: Connection, seen: SeenRow) -> int:
        why = MoveReason(who, "", "", f"Moved out of {seen.table.table} by {who} while it waited: it had not failed.")
        return move_to_archive.move_out(connection, seen, why, own_code)

    def move(connection: Connection, seen: SeenRow) -> None:
        assert target
        move_to_queue.move(connection, seen, target, who, is_ours=wakes)

    def run_now(connection: Connection, seen: SeenRow) -> None:
        move_to_queue.run_now(connection, seen, is_ours=wakes)

    return {"discard": discard, "move_out": move_out, "move": move, "run_now": run_now, "cancel": discard}[name]


def _audited(
    name: str,
    connection: Connection,
    seen: Sequence[SeenRow],
    do: Do,
    said: tuple[Any, str, str, Address | None],
) -> list[ActOutcome]:
    """Act on all, with one audit entry unless nothing was done."""
    person, origin, reason, target = said
    canonical = queue_database().dialect.canonical
    about = {**_about(name, person, origin, reason, seen[0].table), "before": _before(seen), "count": len(seen)}
    with audited({"queue": canonical(target)} if target else {}, **about) as act:
        outcomes = _each(connection, seen, do)
        act.done = sum(each.result in ("done", "unknown") for each in outcomes)
        act.note(**_after(outcomes, canonical(target) if target else ""))
    call_back.recount_retries([each.archive_id for each in outcomes if each.archive_id])
    return outcomes


def _about(name: str, person: Any, origin: str, reason: str, table: Address) -> dict[str, Any]:
    """Return columns of its audit entry."""
    who, subject = name_of(person), queue_database().dialect.canonical(table)[:400]
    return {
        "who": who,
        "verb": ACTS[name].verb,
        "noun": "message",
        "origin": origin,
        "reason": reason,
        "subject": subject,
    }


def _before(seen: Sequence[SeenRow]) -> dict[str, Any]:
    return {"queue": queue_database().dialect.canonical(seen[0].table), "rows": [_named(each) for each in seen]}


def _named(seen: SeenRow) -> dict[str, Any]:
    return {"row_id": str(seen.row_id), **({"due": seen.due} if seen.is_delayed else {"seq": seen.seq})}


def _after(outcomes: Sequence[ActOutcome], target: str) -> dict[str, Any]:
    after: dict[str, Any] = {"queue": target} if target else {}
    if archive_ids := [each.archive_id for each in outcomes if each.archive_id]:
        after["archive_ids"] = archive_ids
    for result in ("skipped", "failed", "unknown"):
        if rows := [_named(each.seen) for each in outcomes if each.result == result]:
            after[result] = rows
    return after


def _each(connection: Connection, seen: Sequence[SeenRow], do: Do) -> list[ActOutcome]:
    outcomes: list[ActOutcome] = []
    for number, each in enumerate(seen):
        try:
            outcomes.append(_one(connection, each, do))
        except DatabaseDown as error:
            outcomes.append(ActOutcome(each, "unknown", f"It may have been done, or not. {error}"))
            return outcomes + [ActOutcome(rest, "failed", str(error)) for rest in seen[number + 1 :]]
        except TimedOut as error:  # the table is locked: each other message would wait as long
            return outcomes + [ActOutcome(rest, "failed", str(error)) for rest in seen[number:]]
    return outcomes


def _one(connection: Connection, seen: SeenRow, do: Do) -> ActOutcome:
    try:
        return ActOutcome(seen, "done", archive_id=do(connection, seen))
    except (held_row.MessageInFlight, held_row.MessageGone):
        return ActOutcome(seen, "skipped", IN_HAND)
    except (DatabaseDown, TimedOut):
        raise
    except (held_row.NotMovable, DatabaseError) as error:
        return ActOutcome(seen, "failed", str(error))
