"""The fingerprint of each dead message: computed when archived, or later for messages that other programs archived."""

import logging
from typing import Any, NamedTuple

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.archive.damaged_row import is_damage, readable
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.statements import Statement
from pgqueue_admin.formatting import fingerprint
from pgqueue_admin.formatting.fingerprint import Fingerprint

log = logging.getLogger(__name__)
BATCH = 200  # rows per transaction
LOOKED_THROUGH = 5_000  # rows searched when some cannot be read
OwnCode = tuple[str, ...]


class Uncovered(NamedTuple):
    """How many messages have no fingerprint yet, counted up to a cap; ``more``: there are more."""

    number: int
    more: bool


def are_kept(connection: Connection) -> bool:
    """Whether the tables store fingerprints; those before version 6 do not."""
    return schema_columns.has(connection, "fingerprint")


def of(dead: DeadMessage, own_code: OwnCode = ()) -> Fingerprint | None:
    """The fingerprint of a message that did not succeed. Without an exception it uses the result, and the blocking
    reason or details."""
    if dead.result == "success":
        return None
    return _told(
        dead.result,
        dead.exception_type,
        dead.exception_message,
        dead.stack_trace,
        dead.retry_blocked_reason or dead.details,
        own_code,
    )


def of_row(row: Any, own_code: OwnCode = ()) -> Fingerprint:
    """The fingerprint of a row of ``pending`` or ``newest``."""
    why = row.retry_blocked_reason or row.details
    return _told(row.result, row.exception_type, row.exception_message, row.stack_trace, why, own_code)


def digest(dead: DeadMessage, own_code: OwnCode) -> str | None:
    """The digest to store. None also if it cannot be computed: no error may keep a message out of the archive."""
    try:
        found = of(dead, own_code)
        return found.digest if found else None
    except Exception:
        log.exception("A dead message of %s is archived without a fingerprint", dead.queue)
        return None


def catch_up(connection: Connection, own_code: OwnCode = (), most: int = BATCH) -> int:
    """Compute missing fingerprints, in one transaction. Return how many; ``most`` means that there may be more.

    Unreadable rows are skipped.
    """
    if not are_kept(connection):
        return 0
    with connection.transaction():
        rows = _pending(connection, most)
        found = {"ids": [row.id for row in rows], "fingerprints": [of_row(row, own_code).digest for row in rows]}
        if rows:
            connection.run(_sql().keep(), found)
    return len(rows)


def _pending(connection: Connection, most: int) -> list[Any]:
    """The newest messages without one. If some are unreadable, as many others from the newest ``LOOKED_THROUGH``."""
    try:
        with connection.transaction():
            return connection.all(_sql().pending(told_by=_sql().told_by), {"most": most})
    except DatabaseError as error:
        if not is_damage(error):
            raise
        log.warning("Messages without a fingerprint are read one by one: %s", error)
    found, before, looked = list[Any](), None, 0
    while len(found) < most and looked < LOOKED_THROUGH:
        asked = {"before": before, "most": most - len(found)}
        ids = [row.id for row in connection.all(_sql().pending_ids(), asked)]
        if not ids:
            break
        found += readable(connection, lambda some: _pending_of(connection, some), ids)
        before, looked = ids[-1], looked + len(ids)
    return found


def _pending_of(connection: Connection, ids: list[int]) -> list[Any]:
    return connection.all(_sql().pending_of(told_by=_sql().told_by), {"ids": ids})


def uncovered(connection: Connection, cap: int) -> Uncovered:
    where, names = seen()
    found: int = connection.value(_sql().uncovered(seen=where), {"cap": cap, **names})
    return Uncovered(min(found, cap), found > cap)


def seen() -> tuple[Statement, dict[str, Any]]:
    """The SQL part ``seen`` that restricts failures to what the current user may see, and its parameter."""
    names = visible_queues.names()
    return (_sql().everywhere, {}) if names is None else (_sql().in_seen, {"seen": names})


def _told(
    result: str, exception: str | None, message: str | None, trace: str | None, why: str | None, own_code: OwnCode
) -> Fingerprint:
    if exception:
        return fingerprint.fingerprint(exception, message, trace, own_code)
    return fingerprint.fingerprint(result, message or why, trace, own_code)


def _sql() -> Any:
    return postgresql().failure_groups
