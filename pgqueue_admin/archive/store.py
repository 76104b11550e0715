"""The archive's store: archive, find, count and read messages."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import crossings, fingerprints, schema_columns
from pgqueue_admin.archive.damaged_row import damaged_row, is_damage
from pgqueue_admin.archive.messages import (
    ArchivedMessage,
    ArchiveFilter,
    ArchiveKey,
    ArchivePart,
    DeadMessage,
    RetriedFrom,
    archive_id_of,
)
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError, ServerTooOld
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.statements import Statement
from pgqueue_admin.transport.wire import header_spellings
from pgqueue_admin.transport.wire import headers as h

SIGHTINGS = 100
ELSEWHERE = "elsewhere"  # replaces the address of a queue that the user may not see
MOST_DEATHS = 1000  # rows with one message id to read
FACETS = 6  # names per field
BODY_START = 16_384  # bytes
HEADERS_READ = 10_000  # messages read when no column holds the value


class ArchivePage(NamedTuple):
    """``after`` leads to older messages, ``before`` to newer ones; None if there are none."""

    messages: list[ArchivedMessage]
    after: ArchiveKey | None
    before: ArchiveKey | None


class QueueCount(NamedTuple):
    queue: str
    dead: int
    oldest_at: datetime
    newest_at: datetime


class CauseCount(NamedTuple):
    queue: str
    exception_type: str | None
    dead: int
    oldest_at: datetime
    newest_at: datetime


class CappedCount(NamedTuple):
    """A count; ``more``: it stopped at its cap."""

    number: int
    more: bool


class FacetCount(NamedTuple):
    """``field``: queue, type, error, endpoint, state; or all, which has one row. ``names``: names the field has."""

    field: str
    name: str
    messages: int
    names: int


class DeathRecord(NamedTuple):
    """Deaths of one message in the queue where it failed. ``is_capped``: there may be more."""

    deaths: int
    retries: int
    first: datetime
    last: datetime
    is_capped: bool


class Sightings(NamedTuple):
    """``more``: there are older ones."""

    rows: list[Any]
    more: bool


def archive_failed(connection: Connection, dead: DeadMessage, own_code: tuple[str, ...] = ()) -> int:
    """Archive a message in the caller's transaction; return the archive id. ``own_code``: PGQUEUE_OWN_CODE."""
    kept = DeadMessage.__dataclass_fields__.keys() - {"target", "retry_token", "edit_of"}
    values = {name: getattr(dead, name) for name in kept}
    values |= {"handled_by": dead.handled_by, "details": dead.details, "message": connection.as_json(dead.summary)}
    schema, table = dead.target or (None, None)
    values |= {"target_schema": schema, "target_table": table, "fingerprint": fingerprints.digest(dead, own_code)}
    query = _sql().archive_failed(**fingerprint_parts(connection, _sql().fingerprint_value))
    archive_id: int = connection.value(query, values)
    died_again(connection, [dead])
    return archive_id


def fingerprint_parts(connection: Connection, value: Any) -> dict[str, Any]:
    """SQL parts of an insert into the archive: fingerprint column and value."""
    if not fingerprints.are_kept(connection):
        return {"fingerprint_column": _sql().no_fingerprint, "fingerprint_value": _sql().no_fingerprint}
    return {"fingerprint_column": _sql().fingerprint_column, "fingerprint_value": value}


def died_again(connection: Connection, dead: list[DeadMessage]) -> None:
    """Mark former rows of retried messages as dead again; for edited ones, the rows they came from."""
    known = [each for each in dead if each.message_id and each.result != "success"]
    if known:
        died = {
            "tables": [each.target.table if each.target else None for each in known],  # it may have been redirected
            "schemas": [each.target.schema if each.target else None for each in known],
            "message_ids": [each.edit_of or each.message_id for each in known],
            "queues": [each.queue for each in known],
            "tokens": [each.retry_token for each in known],
        }
        is_the_one = _sql().is_the_one if schema_columns.has(connection, "retry_token") else _sql().any_may_be
        connection.run(_sql().dead_again(is_the_one=is_the_one), died)


def succeeded(connection: Connection, said: RetriedFrom, message_id: str, queue: Address, who: str) -> bool:
    """In the receive transaction: mark a retried message as handled. Return whether ``said`` matches an archived
    retry."""
    about = {"id": said.archive_id, "token": said.token, "schema": queue.schema, "table": queue.table}
    return connection.run(_sql().succeeded(), {**about, "message_id": message_id, "who": who}) > 0


def get(connection: Connection, archive_id: int) -> ArchivedMessage | None:
    """All columns but the body, untruncated, for acts."""
    return _one(connection, _sql().get, archive_id)


def show(connection: Connection, archive_id: int) -> ArchivedMessage | None:
    """Likewise for a page: long texts are truncated."""
    return _one(connection, _sql().show, archive_id)


def followed(connection: Connection, archive_id: int) -> Any | None:
    """What may change: state, resolved_by, resolved_at, ended_at; with its queue and type."""
    return connection.one(_sql().followed(), {"id": archive_id})


def queues_of(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    """The queue where each died, regardless of the current user; without deleted messages."""
    return {row.id: row.queue for row in connection.all(_sql().queues_of(), {"ids": list(ids)})}


def _one(connection: Connection, statement: Any, archive_id: int) -> ArchivedMessage | None:
    parts = {"is_queue": _sql().is_queue, "on_its_way": crossings.on_its_way(connection)}
    row = connection.one(statement(facts=_sql().facts, **parts), {"id": archive_id})
    return ArchivedMessage(row) if row else None


def page(
    connection: Connection,
    filter: ArchiveFilter,
    after: ArchiveKey | None = None,
    limit: int = 50,
    *,
    before: ArchiveKey | None = None,
    oldest_first: bool = False,
    listed: Any = None,
) -> ArchivePage:
    """Newest first: from the top, after ``after``, or before ``before``.

    ``listed``: the part of archive.sql that selects the columns; None: a list's.
    """
    check(connection, filter)
    statement = _sql().page_back if oldest_first != (before is not None) else _sql().page
    rows = _rows(connection, filter, statement, before or after, limit + 1, listed or _sql().listed)
    more, rows = len(rows) > limit, rows[:limit]
    if before is not None:
        rows.reverse()
    messages = [ArchivedMessage(row) for row in rows]
    older, newer = (True, more) if before is not None else (more, after is not None)
    return ArchivePage(
        messages,
        messages[-1].key if messages and older else None,
        messages[0].key if messages and newer else None,
    )


def matching(filter: ArchiveFilter) -> dict[str, Any]:
    """The SQL part that selects the filter's messages; it needs ``filter.params()``."""
    return {"matches": filter.condition}


def check(connection: Connection, filter: ArchiveFilter) -> None:
    """Raises ServerTooOld if the filter must parse bodies as JSON and the server cannot."""
    if filter.reads_json and not connection.value(postgresql().archive_search.can_try_json()):
        raise ServerTooOld(
            "A value at a path of a body is found on PostgreSQL 16 or newer. As text it is found by body:."
        )


def count(connection: Connection, filter: ArchiveFilter, cap: int) -> CappedCount:
    """How many the filter finds; stops after ``cap`` plus one."""
    check(connection, filter)
    found: int = connection.value(_sql().count(**matching(filter)), {**filter.params(), "cap": cap})
    return CappedCount(min(found, cap), found > cap)


def facets(connection: Connection, filter: ArchiveFilter, cap: int, most: int = FACETS) -> list[FacetCount]:
    """The most frequent names per field among the newest ``cap`` plus one messages, at most ``most`` each; by count."""
    check(connection, filter)
    rows = connection.all(_sql().facets(**matching(filter)), {**filter.params(), "cap": cap, "most": most})
    return [FacetCount(*row) for row in rows]


def ids(connection: Connection, filter: ArchiveFilter) -> tuple[int, ...]:
    """All ids that the filter finds, unordered: for a filter bounded by its window."""
    return tuple(row.id for row in connection.all(_sql().ids(**matching(filter)), filter.params()))


def counts(connection: Connection) -> list[QueueCount]:
    """Dead messages by queue, most first."""
    return [QueueCount(*row) for row in connection.all(_sql().dead_by_queue())]


def causes(connection: Connection) -> list[CauseCount]:
    """Dead messages by queue and exception, most first."""
    return [CauseCount(*row) for row in connection.all(_sql().dead_by_cause())]


def body(connection: Connection, archive_id: int, offset: int = 0, length: int = 65_536) -> ArchivePart | None:
    """``length`` bytes from ``offset`` (0 is the first); None if there is no such message."""
    row = connection.one(_sql().body(), {"id": archive_id, "offset": offset, "length": length})
    return ArchivePart(row.size, row.part or b"") if row else None


def body_starts(connection: Connection, ids: Sequence[int], *, with_headers: bool) -> list[Any]:
    """The start of each body, for a list's columns. ``with_headers``: masking needs them."""
    asked = {"ids": list(ids), "most": BODY_START, "with_headers": with_headers}
    return connection.all(_sql().body_starts(), asked)


def headers(connection: Connection, archive_id: int, offset: int = 0, length: int = 65_536) -> ArchivePart | None:
    """The full headers as received, piece by piece."""
    row = connection.one(_sql().headers_part(), {"id": archive_id, "offset": offset, "length": length})
    return ArchivePart(row.size, row.part or b"") if row else None


def events(connection: Connection, archive_id: int) -> list[Any]:
    """Its events: rows of at, who, verb, operation, target. Target is ELSEWHERE if the user may not see it."""
    found, seen = connection.all(_sql().events(), {"id": archive_id}), visible_queues.current()
    if seen is None:
        return found
    return [
        each._replace(target=ELSEWHERE) if each.target and not seen.sees_name(each.target) else each for each in found
    ]


def deaths(connection: Connection, message: ArchivedMessage) -> DeathRecord | None:
    """None for lease messages, messages without an id, and messages that did not fail."""
    if message.kind == "lease" or not message.message_id or message.result == "success":
        return None
    asked = {"message_id": message.message_id, "queue": message.queue, "limit": MOST_DEATHS}
    (row,) = connection.all(_sql().deaths(), asked)
    is_capped = row.looked_at >= MOST_DEATHS
    return DeathRecord(row.deaths, row.retries, row.first, row.last, is_capped) if row.deaths else None


def sightings(connection: Connection, text: str) -> Sightings:
    """Messages with this archive id, message id or row id; newest first."""
    text = text.strip().replace("\0", "")
    row_id: UUID | None = None
    with suppress(ValueError):
        row_id = UUID(text)
    asked = {
        "text": text,
        "row_id": row_id,
        "id": archive_id_of(text),
        "limit": SIGHTINGS + 1,
        "seen": visible_queues.names(),
    }
    rows = connection.all(_sql().sightings(), asked)
    return Sightings(rows[:SIGHTINGS], len(rows) > SIGHTINGS)


def conversation(connection: Connection, text: str) -> Sightings:
    """Messages with this conversation id in their headers, among the newest ``HEADERS_READ``; newest first."""
    spelled = header_spellings.as_asked(h.CONVERSATION_ID, text.strip().replace("\0", ""))
    asked = {**spelled, "newest": HEADERS_READ, "limit": SIGHTINGS + 1, "seen": visible_queues.names()}
    rows = connection.all(_sql().in_conversation(has_conversation=_sql().has_conversation), asked)
    return Sightings(rows[:SIGHTINGS], len(rows) > SIGHTINGS)


def _rows(
    connection: Connection,
    filter: ArchiveFilter,
    statement: Statement,
    key: ArchiveKey | None,
    limit: int,
    listed: Any,
) -> list[Any]:
    died_at, seq = key or (None, None)
    params = {**filter.params(), "died_at": died_at, "seq": seq, "limit": limit}
    matches, is_queue = matching(filter), _sql().is_queue
    try:
        return connection.all(statement(listed=listed, **matches, is_queue=is_queue), params)
    except DatabaseError as error:
        if not is_damage(error):
            raise
    keys = connection.all(statement(listed=_sql().only_keys, **matches), params)
    return [row for key in keys if (row := _row(connection, key, listed)) is not None]


def _row(connection: Connection, key: Any, listed: Any) -> Any | None:
    """A placeholder if the row is unreadable; None if it was deleted meanwhile."""
    try:
        return connection.one(_sql().listed_one(listed=listed, is_queue=_sql().is_queue), {"id": key.id})
    except DatabaseError as error:
        if not is_damage(error):
            raise
        return damaged_row(key, error)


def _sql() -> Any:
    return postgresql().archive
