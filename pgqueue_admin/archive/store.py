"""The archive: what goes in, how it is found again, and what it says of itself."""

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
ELSEWHERE = "elsewhere"  # in place of the address of a queue that may not be seen
MOST_DEATHS = 1000  # rows with one message id that are looked at
FACETS = 6  # names of a field
BODY_START = 16_384  # bytes
HEADERS_READ = 10_000  # messages, when what is looked for stands in no column


class ArchivePage(NamedTuple):
    """``after`` leads to older messages, ``before`` to newer ones; None where there are none."""

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
    """A count that stopped at its cap when ``more`` is true."""

    number: int
    more: bool


class FacetCount(NamedTuple):
    """``field``: queue, type, error, endpoint, state; or all, of which there is one. ``names``: how many it has."""

    field: str
    name: str
    messages: int
    names: int


class DeathRecord(NamedTuple):
    """Of one message in the queue where it failed. ``is_capped``: there may be others."""

    deaths: int
    retries: int
    first: datetime
    last: datetime
    is_capped: bool


class Sightings(NamedTuple):
    """There are others, older ones, when ``more`` is true."""

    rows: list[Any]
    more: bool


def archive_failed(connection: Connection, dead: DeadMessage, own_code: tuple[str, ...] = ()) -> int:
    """Archive a message inside the caller's transaction; return the archive id. ``own_code``: PGQUEUE_OWN_CODE."""
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
    """What an insert into the archive is completed by."""
    if not fingerprints.are_kept(connection):
        return {"fingerprint_column": _sql().no_fingerprint, "fingerprint_value": _sql().no_fingerprint}
    return {"fingerprint_column": _sql().fingerprint_column, "fingerprint_value": value}


def died_again(connection: Connection, dead: list[DeadMessage]) -> None:
    """Note on the former rows of retried messages that they are dead again; of edited ones, where they came from."""
    known = [each for each in dead if each.message_id and each.result != "success"]
    if known:
        died = {
            "tables": [each.target.table if each.target else None for each in known],  # it may have been sent elsewhere
            "schemas": [each.target.schema if each.target else None for each in known],
            "message_ids": [each.edit_of or each.message_id for each in known],
            "queues": [each.queue for each in known],
            "tokens": [each.retry_token for each in known],
        }
        is_the_one = _sql().is_the_one if schema_columns.has(connection, "retry_token") else _sql().any_may_be
        connection.run(_sql().dead_again(is_the_one=is_the_one), died)


def succeeded(connection: Connection, said: RetriedFrom, message_id: str, queue: Address, who: str) -> bool:
    """Note, in the receive transaction, that a retried message was handled; whether it was that one, as it ``said``."""
    about = {"id": said.archive_id, "token": said.token, "schema": queue.schema, "table": queue.table}
    return connection.run(_sql().succeeded(), {**about, "message_id": message_id, "who": who}) > 0


def get(connection: Connection, archive_id: int) -> ArchivedMessage | None:
    """Everything but the body, whole, for acts."""
    return _one(connection, _sql().get, archive_id)


def show(connection: Connection, archive_id: int) -> ArchivedMessage | None:
    """Likewise for a page: of long texts the start."""
    return _one(connection, _sql().show, archive_id)


def followed(connection: Connection, archive_id: int) -> Any | None:
    """What may change of it: state, resolved_by, resolved_at, ended_at; with its queue and type."""
    return connection.one(_sql().followed(), {"id": archive_id})


def queues_of(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Where each died, whoever asks; none of those that are gone."""
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
    """Newest first: from the top, or what follows ``after``, or what precedes ``before``.

    ``listed``: the part of archive.sql that says what is read of each; None: what a list shows.
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
    """The part by which a statement finds what the filter means; it needs ``filter.params()``."""
    return {"matches": filter.condition}


def check(connection: Connection, filter: ArchiveFilter) -> None:
    """Raises ServerTooOld where bodies would have to be read as JSON and cannot be."""
    if filter.reads_json and not connection.value(postgresql().archive_search.can_try_json()):
        raise ServerTooOld(
            "A value at a path of a body is found on PostgreSQL 16 or newer. As text it is found by body:."
        )


def count(connection: Connection, filter: ArchiveFilter, cap: int) -> CappedCount:
    """How many the filter finds; it looks for no more than ``cap`` and one."""
    check(connection, filter)
    found: int = connection.value(_sql().count(**matching(filter)), {**filter.params(), "cap": cap})
    return CappedCount(min(found, cap), found > cap)


def facets(connection: Connection, filter: ArchiveFilter, cap: int, most: int = FACETS) -> list[FacetCount]:
    """The names that most of the newest ``cap`` and one have, of each field at most so many; most messages first."""
    check(connection, filter)
    rows = connection.all(_sql().facets(**matching(filter)), {**filter.params(), "cap": cap, "most": most})
    return [FacetCount(*row) for row in rows]


def ids(connection: Connection, filter: ArchiveFilter) -> tuple[int, ...]:
    """All that the filter finds, in no order: for one that is bounded by its window."""
    return tuple(row.id for row in connection.all(_sql().ids(**matching(filter)), filter.params()))


def counts(connection: Connection) -> list[QueueCount]:
    """How many lie dead, by queue, most first."""
    return [QueueCount(*row) for row in connection.all(_sql().dead_by_queue())]


def causes(connection: Connection) -> list[CauseCount]:
    """How many lie dead, by queue and exception, most first."""
    return [CauseCount(*row) for row in connection.all(_sql().dead_by_cause())]


def body(connection: Connection, archive_id: int, offset: int = 0, length: int = 65_536) -> ArchivePart | None:
    """``length`` bytes from ``offset`` on (the first is 0); None where there is no such message."""
    row = connection.one(_sql().body(), {"id": archive_id, "offset": offset, "length": length})
    return ArchivePart(row.size, row.part or b"") if row else None


def body_starts(connection: Connection, ids: Sequence[int], *, with_headers: bool) -> list[Any]:
    """Of these the start of each body, for the columns of a list. ``with_headers``: masking needs them."""
    asked = {"ids": list(ids), "most": BODY_START, "with_headers": with_headers}
    return connection.all(_sql().body_starts(), asked)


def headers(connection: Connection, archive_id: int, offset: int = 0, length: int = 65_536) -> ArchivePart | None:
    """As received, whole, piece by piece."""
    row = connection.one(_sql().headers_part(), {"id": archive_id, "offset": offset, "length": length})
    return ArchivePart(row.size, row.part or b"") if row else None


def events(connection: Connection, archive_id: int) -> list[Any]:
    """What was done to it: rows of at, who, verb, operation, target; ELSEWHERE for one that may not be seen."""
    found, seen = connection.all(_sql().events(), {"id": archive_id}), visible_queues.current()
    if seen is None:
        return found
    return [
        each._replace(target=ELSEWHERE) if each.target and not seen.sees_name(each.target) else each for each in found
    ]


def deaths(connection: Connection, message: ArchivedMessage) -> DeathRecord | None:
    """None of a message of the lease queue, or without an id, and of one that did not fail."""
    if message.kind == "lease" or not message.message_id or message.result == "success":
        return None
    asked = {"message_id": message.message_id, "queue": message.queue, "limit": MOST_DEATHS}
    (row,) = connection.all(_sql().deaths(), asked)
    is_capped = row.looked_at >= MOST_DEATHS
    return DeathRecord(row.deaths, row.retries, row.first, row.last, is_capped) if row.deaths else None


def sightings(connection: Connection, text: str) -> Sightings:
    """Where a message with this archive id, message id or row id lies; newest first."""
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
    """Which of the newest ``HEADERS_READ`` messages have this conversation id in their headers; newest first."""
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
    """What is known of it where it cannot be read; None where it is gone meanwhile."""
    try:
        return connection.one(_sql().listed_one(listed=listed, is_queue=_sql().is_queue), {"id": key.id})
    except DatabaseError as error:
        if not is_damage(error):
            raise
        return damaged_row(key, error)


def _sql() -> Any:
    return postgresql().archive
