"""Freezes the set of messages of an operation before it is confirmed."""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import LARGEST_ID, ArchiveFilter
from pgqueue_admin.archive.purge import CountedQueue
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import LEASE_NAME, VisibleQueues
from pgqueue_admin.models import Operation, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.raw_sql import run
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.operations.errors import EmptySelection, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)
LAPSES_AFTER = timedelta(minutes=30)
MOST_TICKED = 100_000


class SentBy(NamedTuple):
    """Messages that an operation sent, unless they were seen to have left their queues."""

    operation: int


class WaitingIn(NamedTuple):
    """Messages waiting in a queue, as counted."""

    queue: Address
    seen: CountedQueue


Chosen = Collection[int] | ArchiveFilter | SentBy | WaitingIn


def freeze_discarded(ids: Collection[int], person: Any, origin: str, reason: str = "") -> Operation:
    """Freeze a retry of messages in the bin, each restored and retried in one transaction. Raises OperationRefused."""
    if refusal := refusal_for(person, Operation.Kind.RESTORE):
        raise OperationNotAllowed(f"Nothing was retried: {refusal}.")
    operation = freeze(Operation.Kind.RETRY, ids, person, origin, reason)
    operation.restores = True
    operation.save(update_fields=["restores"])
    return operation


def freeze(kind: str, chosen: Chosen, person: Any, origin: str, reason: str = "", selection: str = "") -> Operation:
    """Freeze the set of messages; nothing is done to them yet. Raises OperationRefused."""
    if refusal := refusal_for(person, kind):
        raise OperationNotAllowed(f"Nothing was {kind_of(kind).past}: {refusal}.")
    chosen = _of_kind(kind, chosen)
    if seen := visible_queues.current():
        chosen, selection = _in_scope(kind, chosen, selection, seen)
    facts: dict[str, Any] = {"kind": kind, "who": name_of(person), "origin": origin, "reason": reason}
    facts |= {"selection": selection or _said(chosen), **_source(chosen)}
    try:
        return _frozen(facts, chosen)
    except AlreadyExists:  # sets lie beside the queues, also those of other or former consoles
        _pass_over_taken_numbers()
        return _frozen(facts, chosen)


def _frozen(facts: dict[str, Any], chosen: Chosen) -> Operation:
    operation = Operation.objects.create(**facts)
    try:
        operation.queues = _fix(operation.pk, chosen)
    except BaseException:
        operation.delete()
        raise
    operation.count = sum(operation.queues.values())
    operation.save(update_fields=["queues", "count"])
    return operation


def _pass_over_taken_numbers() -> None:
    sql = postgresql().operation
    with queue_database().read_session() as connection:
        highest = connection.value(sql.highest())
    run(sql.pass_over(), {"table": Operation._meta.db_table, "highest": highest})


def lapse(now: datetime | None = None) -> int:
    """Give up frozen operations that nobody started; return how many."""
    limit = (now or database_clock.now()) - LAPSES_AFTER
    lapsed = 0
    for pk in Operation.objects.filter(state=Operation.State.FROZEN, created_at__lte=limit).values_list(
        "pk", flat=True
    ):
        lapsed += _lapse_one(pk)
    return lapsed


def forget(pk: int) -> None:
    """Drop the set of an operation that was given up, but not its number; ``settle`` retries a failed drop.

    Drop it only once: if an older version dropped the set, its number is free, and another console's set may have it.
    """
    given_up = Operation.objects.filter(pk=pk, started_at=None, keeps_set=True)
    if not given_up.exists():
        return
    try:
        with queue_database().write_session() as connection:
            connection.run(postgresql().operation.forget(), {"operation_id": pk})
        given_up.update(keeps_set=False)
    except DatabaseError as error:
        log.warning("The set of operation %s stays for now: %s", pk, error)


def _lapse_one(pk: int) -> int:
    frozen = Operation.objects.filter(pk=pk, state=Operation.State.FROZEN)
    if not frozen.update(state=Operation.State.LAPSED, ended_at=database_clock.now(), keeps_set=True):
        return 0
    forget(pk)
    notify.announce(notify.OPERATION, str(pk))
    return 1


def _of_kind(kind: str, chosen: Chosen) -> Chosen:
    """Narrow a filter to messages that the act applies to; refuse one for another state as a mistake."""
    if isinstance(chosen, SentBy | WaitingIn):
        return chosen
    if not isinstance(chosen, ArchiveFilter):
        return [each for each in dict.fromkeys(chosen) if 0 < each <= LARGEST_ID]
    needed = kind_of(kind).state
    if chosen.state not in ("", needed):
        raise OperationRefused(
            f"Nothing was {kind_of(kind).past}: that is for {needed} messages, these are {chosen.state}."
        )
    return replace(chosen, state=needed)


def _in_scope(kind: str, chosen: Chosen, selection: str, seen: VisibleQueues) -> tuple[Chosen, str]:
    """Narrow to queues that this person may act on. Raises OperationRefused if they named others."""
    nothing = f"Nothing was {kind_of(kind).past}"
    if isinstance(chosen, ArchiveFilter):
        said = selection or _said(chosen)
        where = " OR ".join(map(search_query.died_in, seen.acted_on_names))
        return replace(chosen, within=seen.acted_on_names), f"{said} ({where})".strip() if where else said
    for name in _queues_of(chosen):
        if refusal := queue_access.refusal_by_name(name):
            raise OperationNotAllowed(f"{nothing}: it {refusal}.")
    if isinstance(chosen, SentBy | WaitingIn):
        return chosen, selection
    return _ticked(nothing, tuple(chosen), seen), selection


def _queues_of(chosen: Chosen) -> list[str]:
    if isinstance(chosen, WaitingIn):
        return [postgresql().canonical(chosen.queue)]
    if isinstance(chosen, SentBy):
        sent = Operation.objects.filter(pk=chosen.operation).first()
        return [name or LEASE_NAME for name in sent.queues] if sent else [""]
    return []


def _ticked(nothing: str, ids: tuple[int, ...], seen: VisibleQueues) -> ArchiveFilter:
    """Treat ticked messages that the person may not see as missing. Refuse the act if they may only look at some."""
    ticked = ArchiveFilter(state="", ids=ids)
    with queue_database().read_session() as connection:
        looked_at = store.count(connection, replace(ticked, within=seen.names), MOST_TICKED).number
        acted_on = store.count(connection, replace(ticked, within=seen.acted_on_names), MOST_TICKED).number
    if acted_on < looked_at:
        raise OperationNotAllowed(f"{nothing}: {looked_at - acted_on:,} died in queues that you may only look at.")
    return replace(ticked, within=seen.acted_on_names)


def _fix(pk: int, chosen: Chosen) -> dict[str, int]:
    with queue_database().write_session() as connection, connection.transaction():
        if isinstance(chosen, WaitingIn):
            return _reserve(connection, pk, chosen)
        _insert(connection, pk, chosen)
        rows = connection.all(postgresql().operation.queues(), {"operation_id": pk})
        if not rows:
            raise EmptySelection("No message matches, so there is nothing to do.")
    return {row.queue or "": row.count for row in rows}


def _reserve(connection: Connection, pk: int, chosen: WaitingIn) -> dict[str, int]:
    """Reserve the number of a purge: its messages become items as they are taken."""
    if not chosen.seen.number:
        raise EmptySelection(f"No message waits in {chosen.queue.table}, so there is nothing to do.")
    name = postgresql().canonical(chosen.queue)
    connection.run(postgresql().purge.reserve(), {"operation_id": pk, "queue": name})
    return {name: chosen.seen.number}


def _insert(connection: Connection, pk: int, chosen: Collection[int] | ArchiveFilter | SentBy) -> None:
    sql, whose = postgresql().operation, {"operation_id": pk}
    if isinstance(chosen, SentBy):
        connection.run(sql.freeze_sent(), {"source": chosen.operation, **whose})
    elif isinstance(chosen, ArchiveFilter):
        connection.run(sql.freeze_matching(**store.matching(chosen)), {**chosen.params(), **whose})
    else:
        connection.run(sql.freeze_ids(), {"ids": list(chosen), **whose})


def _source(chosen: Chosen) -> dict[str, Any]:
    if isinstance(chosen, SentBy):
        return {"source": chosen.operation}
    if not isinstance(chosen, WaitingIn):
        return {}
    table = {name: value for name, value in chosen.seen._asdict().items() if name not in ("number", "up_to")}
    return {"up_to": chosen.seen.up_to, "counted_in": table}


def _said(chosen: Chosen) -> str:
    return search_query.written(chosen) if isinstance(chosen, ArchiveFilter) else ""
