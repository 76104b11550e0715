"""Archived messages of one conversation: the newest, those near a known one, and those that others refer to.

Limited to queues that the current user may see: references into other queues are not followed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pgqueue_admin.archive import long_headers
from pgqueue_admin.archive.messages import EDIT_OF, ArchiveKey
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire import header_spellings
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import Headers

NEWEST = 10_000  # rows whose headers are read: no index covers the conversation
NEAR = 5_000  # rows read on each side of a known row
MOST = 500  # messages: each may have headers of 64 kB
EVENTS = 5_000
ROUNDS = 8  # of following causes


@dataclass(frozen=True, slots=True)
class ArchivedRow:
    """``row``: as ``of_ids`` selects it; ``headers``: empty if unreadable."""

    row: Any
    headers: Headers
    events: list[Any] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """Message ids to look up: its own (shared with earlier deaths), its cause's, and that of the message it was
        edited from."""
        said = self.row.message_id, self.headers.get(wire.RELATED_TO), self.headers.get(EDIT_OF)
        return {each for each in said if each}


class ArchivedConversation(NamedTuple):
    """``more``: there are more than MOST messages."""

    messages: list[ArchivedRow]
    more: bool


def numbers(connection: Connection, conversation_id: str, around: ArchiveKey | None = None) -> list[int]:
    """The archive ids of the conversation's messages, by headers, among the NEWEST rows and those NEAR ``around``.
    Raises DatabaseError."""
    sql = postgresql().archive
    spelled = header_spellings.as_asked(wire.CONVERSATION_ID, conversation_id)
    asked = {**spelled, "limit": MOST + 1, "seen": visible_queues.names()}
    newest = sql.in_conversation(has_conversation=sql.has_conversation)
    found = [row.id for row in connection.all(newest, {**asked, "newest": NEWEST})]
    if around is not None:
        near = sql.around_conversation(has_conversation=sql.has_conversation)
        about = {"died_at": around.died_at, "seq": around.seq, "near": NEAR}
        found += [row.id for row in connection.all(near, {**asked, **about})]
    return list(dict.fromkeys(found))


def read(connection: Connection, conversation_id: str, known: list[int], named: Iterable[str]) -> ArchivedConversation:
    """The messages with the archive ids ``known`` or the message ids ``named``, and the causes of all of them. Raises
    DatabaseError."""
    found, asked, wanted, ids = dict[int, ArchivedRow](), set[str](), set(named), known
    for _ in range(ROUNDS):
        new = _of_ids(connection, sorted(wanted), ids, conversation_id)
        found |= {each.row.id: each for each in new}
        asked |= wanted
        wanted = {each for row in new for each in row.ids} - asked
        ids = []
        if not wanted or len(found) > MOST:
            break
    kept = dict(list(found.items())[:MOST])
    _add_events(connection, kept)
    return ArchivedConversation(list(kept.values()), len(known) > MOST or len(found) > MOST)


def _of_ids(connection: Connection, message_ids: list[str], ids: list[int], conversation_id: str) -> list[ArchivedRow]:
    """Keep only those of this conversation: the cause of a message may belong to another."""
    named = [each for each in message_ids if "\0" not in each]
    if not named and not ids:
        return []
    asked = {"message_ids": named, "ids": ids, "limit": MOST + 1, "seen": visible_queues.names()}
    rows = connection.all(postgresql().archive.of_ids(), asked)
    told = (ArchivedRow(row, long_headers.read(row.headers, row.headers_length)[0]) for row in rows)
    return [each for each in told if each.headers.get(wire.CONVERSATION_ID) == conversation_id]


def _add_events(connection: Connection, found: dict[int, ArchivedRow]) -> None:
    if found:
        asked = {"ids": list(found), "limit": EVENTS}
        for event in connection.all(postgresql().archive.events_of(), asked):
            found[event.archive_id].events.append(event)
