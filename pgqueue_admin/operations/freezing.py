"""Fixing the set of an operation before anybody decides on it."""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.archive import terms
from pgqueue_admin.archive.model import LARGEST_ID, Filter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.operations.errors import NotAllowed, NothingChosen, Refused
from pgqueue_admin.operations.kinds import kind_of
from pgqueue_admin.operations.rights import may, name_of
from pgqueue_admin.records import clock, notify
from pgqueue_admin.records.asking import run
from pgqueue_admin.records.models import Operation
from pgqueue_admin.records.source import source

log = logging.getLogger(__name__)
LAPSES_AFTER = timedelta(minutes=30)
NOT_DROPPED = "Its set is not dropped yet."  # stands in last_error until it is
Chosen = Collection[int] | Filter


def freeze(kind: str, chosen: Chosen, person: Any, origin: str, reason: str = "", selection: str = "") -> Operation:
    """Fix which messages are meant, by ids or by a filter. Nothing is done to them yet. Raises Refused."""
    if refusal := may(person, kind):
        raise NotAllowed(f"Nothing was {kind_of(kind).past}: {refusal}.")
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
    with source().reading() as connection:
        highest = connection.value(sql.highest())
    run(sql.pass_over(), {"table": Operation._meta.db_table, "highest": highest})


def lapse(now: datetime | None = None) -> int:
    """Give up frozen operations that nobody started; return how many."""
    limit = (now or clock.now()) - LAPSES_AFTER
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
        with source().writing() as connection:
            connection.run(postgresql().operation.forget(), {"operation_id": pk})
        given_up.update(last_error="")
    except DatabaseError as error:
        log.warning("The set of operation %s stays for now: %s", pk, error)


def _lapse_one(pk: int) -> int:
    frozen = Operation.objects.filter(pk=pk, state=Operation.State.FROZEN)
    if not frozen.update(state=Operation.State.LAPSED, ended_at=clock.now(), last_error=NOT_DROPPED):
        return 0
    forget(pk)
    notify.announce(notify.OPERATION, str(pk))
    return 1


def _of_kind(kind: str, chosen: Chosen) -> Chosen:
    """A filter is narrowed to what the act can be done to; one that asks for something else means a mistake."""
    if not isinstance(chosen, Filter):
        return [each for each in dict.fromkeys(chosen) if 0 < each <= LARGEST_ID]
    needed = kind_of(kind).state
    if chosen.state not in ("", needed):
        raise Refused(f"Nothing was {kind_of(kind).past}: that is for {needed} messages, these are {chosen.state}.")
    return replace(chosen, state=needed)


def _fix(pk: int, chosen: Chosen) -> dict[str, int]:
    with source().writing() as connection, connection.transaction():
        _insert(connection, pk, chosen)
        rows = connection.all(postgresql().operation.queues(), {"operation_id": pk})
        if not rows:
            raise NothingChosen("No message matches, so there is nothing to do.")
    return {row.queue or "": row.count for row in rows}


def _insert(connection: Connection, pk: int, chosen: Chosen) -> None:
    sql, whose = postgresql().operation, {"operation_id": pk}
    if isinstance(chosen, Filter):
        matches = postgresql().archive.matches
        connection.run(sql.freeze_matching(matches=matches), {**chosen.params(), **whose})
    else:
        connection.run(sql.freeze_ids(), {"ids": list(chosen), **whose})


def _said(chosen: Chosen) -> str:
    return terms.written(chosen) if isinstance(chosen, Filter) else ""
