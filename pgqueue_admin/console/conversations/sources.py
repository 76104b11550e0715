"""Queries each source for a conversation, with a time limit for each, and reports what was covered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pgqueue_admin.archive import conversations as archive
from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveKey
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.conversations import sightings
from pgqueue_admin.console.conversations.places import QueueNames, text
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, SchemaMissing, TableMissing, TimedOut
from pgqueue_admin.formatting.conversations.sighting import Sighting, SightingSource
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.history.runtime.installation import missing
from pgqueue_admin.history.storage import message_lookup
from pgqueue_admin.models import AuditEntry, DataFile, Queue
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database
from pgqueue_admin.monitor import browse, clock_skew, conversations, discovery
from pgqueue_admin.monitor.batch_query import within
from pgqueue_admin.monitor.conversations import TableMessages
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import headers as wire

ARCHIVE_SECONDS = 2.0  # for reading headers; lookups by index then take little
HISTORY_MOST = 300
_DAY = timedelta(days=1)
_ON = timedelta(days=31)  # how long after the known messages the rest of a conversation is searched
_BACK = timedelta(days=3653)


class SourceCoverage(NamedTuple):
    """``found``: how many messages; None: the source was not searched, and ``said`` gives the reason.

    ``failed``: a planned read failed, so there may be more even within the range searched.
    """

    source: str
    found: int | None
    said: str
    failed: bool = False


@dataclass
class FoundConversation:
    places: QueueNames = field(default_factory=QueueNames)
    seen: list[Sighting] = field(default_factory=list)
    covered: list[SourceCoverage] = field(default_factory=list)
    focus: set[str] = field(default_factory=set)
    archived: list[archive.ArchivedRow] = field(default_factory=list)


def in_database(connection: Connection, conversation_id: str, asked_for: str, now: datetime) -> FoundConversation:
    """Search queues, delayed tables, error and audit queues, and the archive.

    ``asked_for``: any id of a message in it.
    """
    tables = [each for each in discovery.by_shape(connection, queue_database().schemas) if _holds_messages(each)]
    found = FoundConversation(QueueNames(tables), focus={asked_for} if asked_for else set())
    looked = conversations.read(connection, tables, conversation_id, now)
    looked = _with_row(connection, looked, conversation_id, asked_for, now)
    _add_waiting(connection, found, looked, now)
    _add_archive(connection, found, conversation_id, asked_for)
    return found


def beside() -> list[QueueDatabase]:
    """The databases beside the first. A person with scopes gets only those that have an allowed queue."""
    seen = visible_queues.current()
    return [each for each in looked_at() if seen is None or any(map(each.allows, seen.seen))]


def add_looked_at(
    found: FoundConversation, of: QueueDatabase, conversation_id: str, asked_for: str, now: datetime
) -> None:
    """Add messages waiting in a database beside the first. If it does not answer, report only that."""

    def look(connection: Connection) -> None:
        tables = [each for each in discovery.by_shape(connection, of.schemas) if _holds_messages(each)]
        found.places.add(tables)
        looked = conversations.read(connection, tables, conversation_id, now)
        _add_waiting(connection, found, _with_row(connection, looked, conversation_id, asked_for, now), now, of.alias)

    _, trouble = query_errors.read(look, database=of)
    if trouble:
        found.covered.append(SourceCoverage(f"database {of.alias}", None, text(trouble.sentence), failed=True))


def _holds_messages(table: QueueTable) -> bool:
    return (table.is_counted and table.kind is not TableKind.ARCHIVE) or table.kind is TableKind.DELAYED


def _with_row(
    connection: Connection, looked: list[TableMessages], conversation_id: str, asked_for: str, now: datetime
) -> list[TableMessages]:
    """Add the message requested by its row id: it may lie beyond the rows that were read."""
    row_id = _uuid(asked_for)
    keyed = [each for each in looked if each.table.has_primary_key and each.table.has_messages and not each.unread]
    if row_id is None or any(message.id == row_id for each in looked for message in each.messages):
        return looked
    told = browse.messages(connection, [each.table for each in keyed], row_id)
    more = {
        each.table.address: message
        for each, message in zip(keyed, told, strict=True)
        if message and not isinstance(message, DatabaseError) and _is_of(message.headers, conversation_id)
    }
    return [
        each._replace(messages=[*each.messages, more[each.table.address]]) if each.table.address in more else each
        for each in looked
    ]


def _is_of(headers: dict[str, str | None], conversation_id: str) -> bool:
    return headers.get(wire.CONVERSATION_ID) == conversation_id


def _add_waiting(
    connection: Connection,
    found: FoundConversation,
    looked: Sequence[TableMessages],
    now: datetime,
    alias: str = "",
) -> None:
    kinds = {Address(*row[:2]): row[2] for row in Queue.objects.values_list("schema", "table", "kind")}
    delayed = [each.table.address for each in looked if each.messages and each.table.kind is TableKind.DELAYED]
    skews = clock_skew.of_all(connection, delayed)
    by_kind: dict[str, list[TableMessages]] = {}
    for each in looked:
        kind = str(kinds.get(each.table.address, each.table.kind))
        by_kind.setdefault(_SOURCE.get(kind, SightingSource.QUEUE), []).append(each)
        skew = skews.get(each.table.address)
        zone = skew.zone if skew else timedelta()
        for message in each.messages:
            found.seen.append(sightings.of_waiting(each.table, kind, message, found.places, now, zone))
            if str(message.id) in found.focus:
                found.focus.add(message.message_id)
    for source in (SightingSource.QUEUE, SightingSource.DELAYED, SightingSource.ERRORS, SightingSource.AUDIT):
        if not alias or source in by_kind:
            found.covered.append(_covered_by_tables(source, by_kind.get(source, []), alias))


_SOURCE: dict[str, SightingSource] = {
    TableKind.DELAYED: SightingSource.DELAYED,
    TableKind.ERROR: SightingSource.ERRORS,
    TableKind.AUDIT: SightingSource.AUDIT,
}
_TABLES = {
    SightingSource.QUEUE: ("queue", "queues"), SightingSource.DELAYED: ("delayed table", "delayed tables"),
    SightingSource.ERRORS: ("error queue", "error queues"), SightingSource.AUDIT: ("audit queue", "audit queues"),
}  # fmt: skip


def _covered_by_tables(source: SightingSource, looked: list[TableMessages], alias: str) -> SourceCoverage:
    name, (one, many) = f"{source} of {alias}" if alias else source, _TABLES[source]
    if not looked:
        who = "you may see" if visible_queues.current() is not None else "the console knows"
        return SourceCoverage(name, None, f"there is no {one} that {who}")
    unread = [each for each in looked if each.unread]
    parts = [each for each in looked if not each.unread and not each.whole]
    whole = len(looked) - len(unread) - len(parts)
    said = [f"all of {pluralize(whole, one, many)}"] if whole else []
    if parts:
        which = "those due soonest" if source is SightingSource.DELAYED else "the newest"
        said.append(f"{which} {conversations.NEWEST:,} of {listed([text(each.table.address.table) for each in parts])}")
    if unread:
        named = listed([text(each.table.address.table) for each in unread])
        said.append(f"not looked into: {named} ({text(unread[0].unread)})")
    number = sum(len(each.messages) for each in looked)
    return SourceCoverage(
        name, number if whole or parts else None, "; ".join(said), any(each.failed for each in unread)
    )


def _add_archive(connection: Connection, found: FoundConversation, conversation_id: str, asked_for: str) -> None:
    try:
        rows, said, failed = _archived(connection, found, conversation_id, asked_for)
    except (SchemaMissing, TableMissing):
        found.covered.append(SourceCoverage(SightingSource.ARCHIVE, None, "this database has none"))
        return
    except DatabaseDown:
        raise
    except DatabaseError as error:
        found.covered.append(SourceCoverage(SightingSource.ARCHIVE, None, text(str(error)), failed=True))
        return
    found.archived = rows
    reasons = _reasons(rows)
    found.seen += [sightings.of_archived(each, found.places, reasons) for each in rows]
    found.covered.append(SourceCoverage(SightingSource.ARCHIVE, len(rows), said, failed))
    acts = sum(len(each.events) for each in rows)
    found.covered.append(
        SourceCoverage(SightingSource.PEOPLE, acts, "acts on these archived messages, and what came of them")
    )


def _archived(
    connection: Connection, found: FoundConversation, conversation_id: str, asked_for: str
) -> tuple[list[archive.ArchivedRow], str, bool]:
    around = None
    for row in store.sightings(connection, asked_for).rows[:1] if asked_for else []:
        around = ArchiveKey(row.died_at, 0)
        found.focus |= {row.message_id} if row.message_id else set()
    near = f", {archive.NEAR:,} on each side of the one asked for" if around else ""
    said = f"by headers of the newest {archive.NEWEST:,}{near}, and by what these name"
    failed = False
    try:
        with within(connection, ARCHIVE_SECONDS):
            known = archive.numbers(connection, conversation_id, around)
    except TimedOut:
        known, failed, said = (
            [],
            True,
            f"headers were not read within {ARCHIVE_SECONDS:.0f} s; only what others name was found",
        )
    ids = {each.message_id for each in found.seen} | {each.related_to for each in found.seen} | found.focus
    named = sorted(each for each in ids if each)[: archive.MOST]
    told = archive.read(connection, conversation_id, known, named)
    said = f"{said}; more than {archive.MOST:,}, of which these are the newest" if told.more else said
    return told.messages, said, failed


def _reasons(rows: list[archive.ArchivedRow]) -> dict[int, str]:
    """The reasons that people gave for the operations on these messages."""
    numbers = {event.operation for each in rows for event in each.events if event.operation}
    entries = AuditEntry.objects.filter(operation_id__in=numbers, noun="message").exclude(reason="")
    return {
        number: reason for number, reason in entries.order_by("-at").values_list("operation_id", "reason") if number
    }


def history_is_there() -> str:
    """Why history cannot be searched; empty if it can."""
    if visible_queues.current() is not None:
        return "its files are of all queues together, and are not shown"
    if not DataFile.objects.filter(dataset=DataFile.Dataset.HISTORY).exists():
        return "it is not set up, or has no files yet"
    return missing()


def add_history(
    found: FoundConversation, conversation_id: str, known: tuple[datetime | None, datetime | None], now: datetime
) -> None:
    """``known``: begin and end of what was found. Searches the days around it, otherwise all days, newest first."""
    since, until = _stretch(known, now)
    try:
        told = message_lookup.in_conversation(conversation_id, since, until, HISTORY_MOST)
    except message_lookup.FilesUnreadable as error:
        found.covered.append(SourceCoverage(SightingSource.HISTORY, None, str(error), failed=True))
        return
    fresh = sightings.not_archived(told.newest, found.archived)
    found.seen += [sightings.of_finished(each, found.places) for each in fresh]
    days = f"files of {since:%Y-%m-%d} to {until:%Y-%m-%d}" if known[0] else "all files"
    said = f"{days}; {pluralize(told.files, 'file')} in all" if told.files else f"{days}: there are none"
    if told.unread:
        said += f", of which {told.unread:,} were not read within {message_lookup.WITHIN:.0f} s"
    if told.matched > len(told.newest):
        said += f"; the newest {len(told.newest):,} of {told.matched:,}"
    found.covered.append(SourceCoverage(SightingSource.HISTORY, len(fresh), said, bool(told.unread)))


def _stretch(known: tuple[datetime | None, datetime | None], now: datetime) -> tuple[datetime, datetime]:
    """Limit the span to ten years: times in headers are whatever their writers say."""
    begin, end = known
    if begin is None:
        return now - _BACK, now + _DAY
    begin = min(max(begin, now - _BACK), now)
    end = min(max(end or begin, begin), now)
    return (begin - _DAY).astimezone(UTC), min(end + _ON, now + _DAY).astimezone(UTC)


def _uuid(said: str) -> UUID | None:
    try:
        return UUID(said)
    except ValueError:
        return None
