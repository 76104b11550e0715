"""Edit and retry: an edited message is sent in place of a dead one, with a new id."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pgqueue_admin.archive import crossings, dead_messages, lease_retry
from pgqueue_admin.archive.message_edit import (
    MOST_BYTES,
    Edited,
    MessageEdit,
    NotEdited,
    is_locked,
    new_id,
    of_body,
    of_headers,
)
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, Outcome, RetriedFrom
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_now

LEASE_TYPE = "application/json"  # content type of a lease message, which has no headers
_BATCH = 4_000_000  # bytes of bodies in memory at once, but at least one body


class EditedMessage(NamedTuple):
    """``headers``: all unlocked headers to send. ``body`` None: unchanged."""

    headers: Mapping[str, str | None]
    body: bytes | None


class EditedRetry(NamedTuple):
    """``message_id``: the new message's; it was sent if the outcome is *done*.

    ``is_on_its_way``: it crosses into another database, which has not confirmed it yet.
    """

    outcome: Outcome
    message_id: str
    is_on_its_way: bool = False


def retry(
    connection: Connection,
    archive_id: int,
    edited: EditedMessage,
    target: Address,
    who: str,
    *,
    is_ours: bool,
    judge: Callable[[Connection], str],
    message_id: str,
) -> EditedRetry:
    """Insert the edited message into ``target`` of this database and mark the dead one, in one transaction.

    ``judge`` returns why the target is not written to, or "". ``is_ours``: one of our endpoints receives there, so the
    message carries the mark of its archived original. A lease message goes back only into the lease queue, as JSON, and
    gets a number as its id instead of ``message_id``. Raises DatabaseError.
    """
    with connection.transaction():
        row = _held(connection, archive_id, edited)
        if isinstance(row, Outcome):
            return EditedRetry(row, message_id)
        if refused := _refused(archive_id, judge(connection)):
            return EditedRetry(refused, message_id)
        if row.kind == "lease":
            return _put_lease(connection, archive_id, edited.body or b"", target, who)
        tokens = dead_messages.new_tokens(connection, [archive_id] if is_ours else [])
        headers = headers_of(row.headers, edited, message_id, archive_id, tokens.get(archive_id))
        outcome = _put(connection, archive_id, target, headers, edited.body)
        if outcome.result == "done":
            connection.run(postgresql().archive.retarget(), {"ids": [archive_id], **target._asdict()})
            tell_with_commit(connection, postgresql(), [target] if is_ours else [])
            dead_messages.mark_retried(connection, {archive_id: outcome}, tokens, who, None, dead_messages.EDITED)
    return EditedRetry(outcome, message_id)


def _put_lease(connection: Connection, archive_id: int, body: bytes, target: Address, who: str) -> EditedRetry:
    if target != LEASE_QUEUE:
        return EditedRetry(Outcome(archive_id, "failed", "A lease message goes back into the lease queue."), "")
    outcome = lease_retry.put_edited(connection, {archive_id: body.decode()})[archive_id]
    if outcome.result == "done":
        dead_messages.mark_retried(connection, {archive_id: outcome}, {}, who, None, dead_messages.EDITED)
    return EditedRetry(outcome, outcome.sent_as or "")


def set_out(
    connection: Connection, archive_id: int, edited: EditedMessage, target: Address, who: str
) -> tuple[EditedRetry, int | None]:
    """Likewise into a queue of another database, which the caller has checked: start a crossing and return its id; None
    if refused. Raises DatabaseError."""
    message_id = str(uuid4())
    with connection.transaction():
        row = _held(connection, archive_id, edited)
        if isinstance(row, Outcome):
            return EditedRetry(row, message_id), None
        headers = h.dump(headers_of(row.headers, edited, message_id, archive_id, None))
        (crossing,) = crossings.put_back(connection, {target: [row]}, {archive_id}, who, None, False)
        crossings.put_edited(connection, {archive_id: (headers, edited.body)})
    return EditedRetry(Outcome(archive_id, "skipped", crossings.on_its_way_into(target)), message_id), crossing


def _held(connection: Connection, archive_id: int, edited: EditedMessage) -> Any:
    """The locked row, or an Outcome if it cannot be sent."""
    held = dead_messages.hold(connection, [archive_id])
    if not held:
        return Outcome(archive_id, "failed", "It is no longer in the archive.")
    (row,) = held
    return dead_messages.refused(row, "dead") or _unfit(row, edited) or row


def headers_of(
    text: str | None, edited: EditedMessage, message_id: str, archive_id: int, token: UUID | None
) -> h.Headers:
    """The headers to send: locked ones as a retry keeps them, the others as edited, with a new id and time."""
    kept = dead_messages.kept_headers(text)
    locked = {name: value for name, value in kept.items() if is_locked(name)}
    said = {EDIT_OF: kept[h.MESSAGE_ID]} if kept.get(h.MESSAGE_ID) else {}
    marks = said | ({RETRIED_FROM: str(RetriedFrom(archive_id, token))} if token else {})
    return {**locked, h.MESSAGE_ID: message_id, h.TIME_SENT: wire_now(), **edited.headers, **marks}


def _unfit(row: Any, edited: EditedMessage) -> Outcome | None:
    if row.kind == "lease":
        return None if edited.body else Outcome(row.id, "failed", "Nothing of it was changed.")
    if row.kind != "transport":
        return Outcome(row.id, "failed", "Only messages of queues can be edited.")
    if row.body_bytes is None and edited.body is None:
        return Outcome(row.id, "failed", "Its body is NULL: put back, it would wedge the queue. Write one.")
    try:
        h.parse(row.headers)
    except h.HeadersUnreadable as error:
        return Outcome(row.id, "failed", f"It cannot be retried: {error}.")
    return None


def _refused(archive_id: int, why: str) -> Outcome | None:
    return Outcome(archive_id, "failed", why) if why else None


def _put(connection: Connection, archive_id: int, target: Address, headers: h.Headers, body: bytes | None) -> Outcome:
    outcome = _put_all(connection, target, {archive_id: (h.dump(headers), body)})[archive_id]
    return outcome._replace(sent_as=None)


def _put_all(
    connection: Connection, target: Address, edited: Mapping[int, tuple[str, bytes | None]]
) -> dict[int, Outcome]:
    """``edited`` by archive id: headers, and the body if it changed. If the queue refuses one, all stay dead."""
    name, row_ids = postgresql().canonical(target), {each: uuid4() for each in edited}
    headers, bodies = ([each[place] for each in edited.values()] for place in (0, 1))
    asked = {"ids": list(edited), "row_ids": list(row_ids.values()), "headers": headers, "bodies": bodies}
    try:
        with connection.transaction():
            taken = connection.run(postgresql().archive.put_edited(table=target), asked) if edited else 0
            if taken != len(edited):
                raise RowsDropped(f"It took {taken} of {len(edited)}, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return {each: Outcome(each, "failed", f"{name} did not take it: {error}") for each in edited}
    return {each: Outcome(each, "done", target=name, sent_as=str(row_id)) for each, row_id in row_ids.items()}


class JudgedRow(NamedTuple):
    """``raw``: the body, if the edit reads it."""

    row: Any
    raw: bytes | None
    edited: Edited | NotEdited


class ManyEdits(NamedTuple):
    """``seed``: derives the ids of the new messages. ``hides``: given a row, its headers and its body (None if
    unchanged), why the message may not be read, or ""."""

    edit: MessageEdit
    seed: str
    hides: Callable[[Any, h.Headers, bytes | None], str]

    def of_one(self, row: Any, raw: bytes | None) -> Edited | NotEdited:
        """``row``: id, kind, message_type, headers, body_bytes. ``raw``: the body if the edit changes it; for a lease
        message its document, None if longer than can be edited."""
        if row.kind == "lease":
            return self._of_lease(row, raw)
        if row.kind != "transport":
            return NotEdited("unread", dead_messages.ONLY_QUEUES)
        try:
            kept = dead_messages.kept_headers(row.headers)
        except h.HeadersUnreadable as error:
            return NotEdited("unread", f"It cannot be retried: {error}.")
        if why := self.hides(row, kept, raw):
            return NotEdited("unread", why)
        own = {name: value for name, value in kept.items() if not is_locked(name)}
        if self.edit.part == "header":
            return of_headers(self.edit, own)
        if (row.body_bytes or 0) > MOST_BYTES:
            return NotEdited("unread", f"Its body has more than {MOST_BYTES:,} bytes.")
        return of_body(self.edit, own, raw, kept.get(h.CONTENT_TYPE))

    def _of_lease(self, row: Any, raw: bytes | None) -> Edited | NotEdited:
        if self.edit.part == "header":
            return NotEdited("lacks", "A lease message has no headers: its fields can be changed.")
        if raw is None:
            return NotEdited("unread", f"It has more than {MOST_BYTES:,} bytes.")
        if why := self.hides(row, {h.CONTENT_TYPE: LEASE_TYPE}, raw):
            return NotEdited("unread", why)
        return of_body(self.edit, {}, raw, LEASE_TYPE)

    def each(self, connection: Connection, rows: Sequence[Any]) -> Iterator[list[JudgedRow]]:
        """Read and edit in batches, so few bodies are in memory."""
        is_of_bodies = self.edit.part == "field"
        documents = _document_sizes(connection, rows) if is_of_bodies else {}
        for batch in _batches(rows, documents):
            bodies = _bodies(connection, batch, documents) if is_of_bodies else {}
            yield [JudgedRow(row, bodies.get(row.id), self.of_one(row, bodies.get(row.id))) for row in batch]

    def put(
        self, connection: Connection, target: Address, rows: list[Any], tokens: Mapping[int, UUID]
    ) -> dict[int, Outcome]:
        """Insert changed messages (``dead_messages.Editing``). Unchanged ones are not sent."""
        outcomes: dict[int, Outcome] = {}
        for batch in self.each(connection, rows):
            changed, unchanged = self._split(batch, tokens)
            outcomes |= unchanged | _put_all(connection, target, changed)
        return outcomes

    def put_leases(self, connection: Connection, rows: list[Any]) -> dict[int, Outcome]:
        """Likewise, into the lease queue."""
        outcomes: dict[int, Outcome] = {}
        for batch in self.each(connection, rows):
            changed = {row.id: edited.body for row, _, edited in batch if isinstance(edited, Edited)}
            outcomes |= {row.id: _stays(row, edited) for row, _, edited in batch if isinstance(edited, NotEdited)}
            documents = {each: body.decode() for each, body in changed.items() if body is not None}
            outcomes |= lease_retry.put_edited(connection, documents) if documents else {}
        return outcomes

    def composed(
        self, connection: Connection, rows: Sequence[Any]
    ) -> tuple[dict[int, tuple[str, bytes | None]], dict[int, Outcome]]:
        """Likewise for another database: the messages to send, and the outcomes of the others."""
        changed: dict[int, tuple[str, bytes | None]] = {}
        unchanged: dict[int, Outcome] = {}
        for batch in self.each(connection, rows):
            more, same = self._split(batch, {})
            changed |= more
            unchanged |= same
        return changed, unchanged

    def _split(
        self, batch: list[JudgedRow], tokens: Mapping[int, UUID]
    ) -> tuple[dict[int, tuple[str, bytes | None]], dict[int, Outcome]]:
        changed, unchanged = {}, {}
        for row, _, edited in batch:
            if isinstance(edited, NotEdited):
                unchanged[row.id] = _stays(row, edited)
                continue
            typed = EditedMessage(edited.headers, edited.body)
            headers = headers_of(row.headers, typed, new_id(self.seed, row.id), row.id, tokens.get(row.id))
            changed[row.id] = h.dump(headers), edited.body
        return changed, unchanged


def _stays(row: Any, edited: NotEdited) -> Outcome:
    return Outcome(row.id, edited.result, edited.why)


def _batches(rows: Sequence[Any], documents: Mapping[int, int]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for row in rows:
        worth = min(row.body_bytes or documents.get(row.id, 0), MOST_BYTES)
        if batch and size + worth > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += worth
    if batch:
        yield batch


def _document_sizes(connection: Connection, rows: Sequence[Any]) -> dict[int, int]:
    """Bytes by archive id, for lease messages."""
    ids = [row.id for row in rows if row.kind == "lease"]
    found = connection.all(postgresql().archive.document_sizes(), {"ids": ids}) if ids else []
    return {row.id: row.bytes for row in found}


def _bodies(connection: Connection, rows: Sequence[Any], documents: Mapping[int, int]) -> dict[int, bytes]:
    """Bodies by archive id, without those longer than MOST_BYTES."""
    sql = postgresql().archive
    ids = [row.id for row in rows if row.body_bytes is not None and row.body_bytes <= MOST_BYTES]
    leases = [row.id for row in rows if documents.get(row.id, MOST_BYTES + 1) <= MOST_BYTES]
    found = connection.all(sql.bodies(), {"ids": ids}) if ids else []
    found += connection.all(sql.documents(), {"ids": leases}) if leases else []
    return {row.id: bytes(row.body) for row in found}
