"""Fixing the set of an operation before anybody decides on it."""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import LARGEST_ID, ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.raw_sql import run
from pgqueue_admin.services.operations.errors import EmptySelection, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)
LAPSES_AFTER = timedelta(minutes=30)
NOT_DROPPED = "Its set is not dropped yet."  # stands in last_error until it is
Chosen = Collection[int] | ArchiveFilter


def freeze(kind: str, chosen: Chosen, person: Any, origin: str, reason: str = "", selection: str = "") -> Operation:
    """Fix which messages are meant, by ids or by a filter. Nothing is done to them yet. Raises Refused."""
    if refusal := refusal_for(person, kind):
        raise OperationNotAllowed(f"Nothing was {kind_of(kind).past}: {refusal}.")
    chosen = _of_kind(kind, chosen)
    facts = {"kind": kind, "who": name_of(person), "origin": origin, "reason": reason}
    facts["selection"] = selection or _said(chosen)
    try:
        return _frozen(facts, chosen)
    except AlreadyExists:  # sets lie beside the queues: another console's, or those of one that is gone
        _pass_over_taken_numbers()
        return _frozen(facts, chosen)


def _frozen(facts: dict[str, str], chosen: Chosen) -> Operation:
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
    with queue_database().reading() as connection:
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
    """Drop a frozen set that was given up, but not its number; one that cannot be dropped now is dropped by ``settle``.

    Once: of a set that an older version dropped the number is free, and the next one under it may be another console's.
    """
    given_up = Operation.objects.filter(pk=pk, started_at=None, last_error=NOT_DROPPED)
    if not given_up.exists():
        return
    try:
        with queue_database().writing() as connection:
            connection.run(postgresql().operation.forget(), {"operation_id": pk})
        given_up.update(last_error="")
    except DatabaseError as error:
        log.warning("The set of operation %s stays for now: %s", pk, error)


def _lapse_one(pk: int) -> int:
    frozen = Operation.objects.filter(pk=pk, state=Operation.State.FROZEN)
    if not frozen.update(state=Operation.State.LAPSED, ended_at=database_clock.now(), last_error=NOT_DROPPED):
        return 0
    forget(pk)
    notify.announce(notify.OPERATION, str(pk))
    return 1


def _of_kind(kind: str, chosen: Chosen) -> Chosen:
    """A filter is narrowed to what the act can be done to; one that asks for something else means a mistake."""
    if not isinstance(chosen, ArchiveFilter):
        return [each for each in dict.fromkeys(chosen) if 0 < each <= LARGEST_ID]
    needed = kind_of(kind).state
    if chosen.state not in ("", needed):
        raise OperationRefused(
            f"Nothing was {kind_of(kind).past}: that is for {needed} messages, these are {chosen.state}."
        )
    return replace(chosen, state=needed)


def _fix(pk: int, chosen: Chosen) -> dict[str, int]:
    with queue_database().writing() as connection, connection.transaction():
        _insert(connection, pk, chosen)
        rows = connection.all(postgresql().operation.queues(), {"operation_id": pk})
        if not rows:
            raise EmptySelection("No message matches, so there is nothing to do.")
    return {row.queue or "": row.count for row in rows}


def _insert(connection: Connection, pk: int, chosen: Chosen) -> None:
    sql, whose = postgresql().operation, {"operation_id": pk}
    if isinstance(chosen, ArchiveFilter):
        connection.run(sql.freeze_matching(**store.matching(chosen)), {**chosen.params(), **whose})
    else:
        connection.run(sql.freeze_ids(), {"ids": list(chosen), **whose})


def _said(chosen: Chosen) -> str:
    return search_query.written(chosen) if isinstance(chosen, ArchiveFilter) else ""
