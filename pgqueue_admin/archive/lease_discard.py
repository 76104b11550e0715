"""Lease messages that nobody has locked go into the bin: held, archived and deleted in the caller's transaction."""

from collections.abc import Sequence
from typing import Any

from pgqueue_admin.archive import call_back
from pgqueue_admin.archive.call_back import CallBackAct
from pgqueue_admin.archive.messages import clean
from pgqueue_admin.archive.move_to_archive import DISCARDED
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.dialects.postgresql import postgresql


def discard_held(connection: Connection, held: Sequence[Any], who: str, details: str, operation: int) -> list[int]:
    """``held``: id and retried_from of locked rows. Return the archive ids. Nobody is told of a death.

    What a retry has put there goes back to its place in the archive, as discarded. Raises RowsDropped, DatabaseError.
    """
    formers = _taken_back(connection, held, CallBackAct(who, DISCARDED, DISCARDED, operation))
    ids = [row.id for row in held if row.retried_from not in formers]
    taken = [row.id for row in connection.all(_sql().take_leases(), _about(ids, who, details))] if ids else []
    if len(taken) != len(ids):
        raise RowsDropped(f"It gave {len(taken)} of {len(ids)}, and that was undone.")
    if taken:
        connection.run(_sql().set_leases_aside(), {"ids": taken, "who": clean(who), "operation": operation})
        event = {"ids": taken, "targets": [None] * len(taken), "who": clean(who), "verb": DISCARDED}
        connection.run(postgresql().archive.note(), {**event, "operation": operation})
    return [*formers, *taken]


def _taken_back(connection: Connection, held: Sequence[Any], back: CallBackAct) -> list[int]:
    ids = [row.retried_from for row in held if row.retried_from is not None]
    outcomes = call_back.take_back(connection, call_back.sent_by_ids(connection, ids), back) if ids else {}
    return [each for each, outcome in outcomes.items() if outcome.result == "done"]


def _about(ids: list[int], who: str, details: str) -> dict[str, Any]:
    queue = postgresql().canonical(QUEUE)
    return {"ids": ids, "handled_by": (clean(who) or "")[:50], "details": clean(details), "queue": queue}


def _sql() -> Any:
    return postgresql().purge
