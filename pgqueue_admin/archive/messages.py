"""Dead messages to be archived, archived messages, and the archive's filter."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import search_condition
from pgqueue_admin.archive.search_terms import AllOf, Lane, Node, Span, Term, reads_json, reads_text
from pgqueue_admin.dialects import Address, database_alias, visible_queues
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.statements import Statement

# Set on a retry into a queue of ours: archive id and token, by which the handling endpoint reports success.
# It has none of the five failure prefixes; the next retry replaces it. Foreign queues never see it.
RETRIED_FROM = "Pgqueue.RetriedFrom"
# Set on an edited message, whose id is new: the original's message id. The next retry removes it.
EDIT_OF = "Pgqueue.EditOf"
_TOKEN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LARGEST_ID = 2**31 - 1
MOST_HEADERS = 16_000_000  # bytes per batch: the process reads them, and the failure data is sent as one document

UNKNOWN_HANDLER = "(unknown)"  # handled_by is a column of the original table and NOT NULL


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """What is archived of a transport message. Texts contain no NUL and are short enough for their indexes."""

    result: str = "failed"
    kind: str = "transport"
    queue: str  # canonical address of the queue in which it died
    message_id: str | None = None
    message_type: str | None = None
    headers: str | None = None  # exactly as received; never read back as JSON by the database
    body: bytes | None = None
    row_id: UUID | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    stack_trace: str | None = None
    failed_queue: str | None = None  # FailedQ as received
    target: Address | None = None  # FailedQ parsed
    retry_blocked_reason: str | None = None  # why it can never be retried
    endpoint: str | None = None
    machine: str | None = None
    attempts: int | None = None
    retry_token: UUID | None = None  # retry token that it carries; not stored
    edit_of: str | None = None  # message id that it claims to be edited from; likewise
    sent_at: datetime | None = None
    died_at: datetime | None = None  # None: now, by the server's clock

    @property
    def handled_by(self) -> str:
        return (self.endpoint or UNKNOWN_HANDLER)[:50]

    @property
    def details(self) -> str | None:
        """The original table's free text, which its readers show as the cause."""
        return (
            f"{self.exception_type}: {self.exception_message or ''}"[:1000]
            if self.exception_type
            else self.retry_blocked_reason
        )

    @property
    def summary(self) -> dict[str, str | None]:
        """The original table's ``message``: short, without NUL."""
        return {"type": self.message_type, "id": self.message_id, "queue": self.queue, "error": self.exception_type}


class ArchiveKey(NamedTuple):
    """Position of a page's end: rows are ordered by both, newest first."""

    died_at: datetime
    seq: int


def _seen() -> tuple[str, ...] | None:
    names = visible_queues.names()
    return None if names is None else tuple(names)


@dataclass(frozen=True, slots=True)
class ArchiveFilter:
    """Selects archived messages. Empty fields do not filter; all given ones must match.

    All ``words`` must be in the error's message, all ``headers`` in the headers' text, all ``bodies`` in the body as
    UTF-8.
    """

    state: str = "dead"  # dead, retried, succeeded, dead_again, discarded; empty for all
    result: str = ""  # success, failed, rejected, lock_expired; unsuccessful for all but the first
    kind: str = ""  # transport, control, lease; message for all but control, as history counts them
    queue: str = ""  # canonical address
    endpoint: str = ""
    type: str = ""  # full name, or its last part
    type_is: str | None = None  # this name and no other; empty: it has none
    type_from: str = ""  # what the name begins with
    exception: str = ""  # likewise
    exception_is: str | None = None
    exception_from: str = ""
    message_id: str = ""
    fingerprint: str = ""  # of its failure
    operation: int | None = None  # operation whose set it was in
    last_operation: int | None = None  # the operation that acted on it last
    since: str = ""  # when it died or was archived, ISO 8601 with a zone; until is exclusive
    until: str = ""
    words: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    also: tuple[Node, ...] = ()  # conditions that no field above expresses
    ids: tuple[int, ...] | None = None  # only these
    window: tuple[Lane, ...] | None = None  # where texts are searched; None: everywhere
    # canonical addresses of queues visible to the current user, captured at creation; None: all
    within: tuple[str, ...] | None = field(default_factory=_seen)

    @property
    def reads_rows(self) -> bool:
        """Whether the database scans texts row by row instead of using column indexes."""
        return any(map(reads_text, self._nodes()))

    @property
    def reads_json(self) -> bool:
        return any(map(reads_json, self._nodes()))

    def kept(self) -> "ArchiveFilter":
        """A copy that keeps the current user's visible queues, for use outside the request."""
        return replace(self, within=_seen()) if self.within is None else self

    def asked(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def params(self) -> dict[str, Any]:
        """Parameters of ``condition``."""
        return self._compiled().params

    @property
    def condition(self) -> Statement:
        """The condition that page, count and freeze share, so all three mean the same set."""
        return self._compiled().statement

    @property
    def columns(self) -> AllOf:
        """The terms that read columns only."""
        return AllOf(tuple(node for node in self._nodes() if not reads_text(node)))

    @property
    def texts(self) -> AllOf:
        """The terms that read texts."""
        return AllOf(tuple(node for node in self._nodes() if reads_text(node)))

    def _compiled(self) -> search_condition.Compiled:
        if self.window is None:
            return search_condition.compiled(AllOf(tuple(self._nodes())))
        return search_condition.compiled_within(self.columns, self.texts, self.window)

    def _nodes(self) -> Iterator[Node]:
        for name, (said, how) in _TERMS.items():
            value = getattr(self, name)
            if value is not None and (value != "" or name in _MAY_BE_NONE):
                yield Term(said, str(value), how)
        for name, said in _TEXTS.items():
            yield from (Term(said, text) for text in getattr(self, name))
        if self.last_operation is not None:
            yield Term("op", f"{self.last_operation}{search_condition.LAST}")
        if self.since or self.until:
            yield Span("died", "", self.since or None, self.until or None)
        if self.ids is not None:
            yield Term("ids", "", keys=tuple(map(str, self.ids)))
        within = _seen() if self.within is None else self.within  # the filter may have been created outside a request
        if within is not None:
            yield Term("within", "", keys=within)
        yield from self.also


_TERMS = {
    "state": ("state", "is"),
    "result": ("result", "is"),
    "kind": ("kind", "is"),
    "queue": ("queue", "is"),
    "endpoint": ("endpoint", "is"),
    "type": ("type", "has"),
    "type_is": ("type", "is"),
    "type_from": ("type", "starts"),
    "exception": ("error", "has"),
    "exception_is": ("error", "is"),
    "exception_from": ("error", "starts"),
    "message_id": ("id", "is"),
    "fingerprint": ("fp", "is"),
    "operation": ("op", "has"),
}
_MAY_BE_NONE = {"type_is", "exception_is"}  # an empty name means messages without one
_TEXTS = {"words": "message", "headers": "headers", "bodies": "body"}


class ArchivedMessage:
    """An archive row with its columns as attributes; rows of a page lack headers and stack trace.

    Rows for a message's page hold the start of long texts; ``headers_length`` and its like give the full length.
    """

    __slots__ = ("_row",)

    def __init__(self, row: Any):
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    @property
    def key(self) -> ArchiveKey:
        return ArchiveKey(self._row.died_at, self._row.seq)

    @property
    def target(self) -> Address | None:
        return target_of(self._row)

    @property
    def found_in(self) -> str | None:
        """The queue that it was ingested from, if the current user may see that queue."""
        seen, queue = visible_queues.current(), self._row.ingested_from
        return queue if seen is None or seen.sees_name(queue) else None

    @property
    def why_no_retry(self) -> str | None:
        """Why a retry would be refused now, or None."""
        return why_no_retry(self._row)


class Outcome(NamedTuple):
    """The result of an act for one message."""

    archive_id: int
    result: str  # done, skipped, failed
    why: str | None = None
    previous_actor: str | None = None
    previous_at: datetime | None = None
    target: str | None = None  # canonical address it was sent to
    operation: int | None = None
    sent_as: str | None = None  # id of its row in the target


class ArchivePart(NamedTuple):
    """A piece of a body. ``size`` is the whole body's; None if the body is NULL."""

    size: int | None
    content: bytes


def archive_id_of(text: str) -> int | None:
    """The archive id in an untrusted text, or None. The length is limited because int() refuses very long digits."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 11 else 0
    return number if 0 < number <= LARGEST_ID else None


class RetriedFrom(NamedTuple):
    """Content of a retried message's header. It is untrusted: only the archive can confirm it."""

    archive_id: int
    token: UUID

    def __str__(self) -> str:
        return f"{self.archive_id} {self.token}"


def retried_from(text: str | None) -> RetriedFrom | None:
    """None for text that no retry writes, and for the format before tokens."""
    number, _, token = (text or "").partition(" ")
    archive_id = archive_id_of(number)
    if archive_id is None or not _TOKEN.fullmatch(token):
        return None
    return RetriedFrom(archive_id, UUID(token))


def target_of(row: Any) -> Address | None:
    if row.kind == "lease":
        return LEASE_QUEUE
    return Address(row.target_schema, row.target_table) if row.target_table else None


def why_no_retry(row: Any, *, is_redirected: bool = False) -> str | None:
    """A sentence, or None if it can be put back. ``is_redirected``: into another queue than it died in."""
    if row.retry_blocked_reason:
        return str(row.retry_blocked_reason)
    if row.kind == "lease":
        return None
    if row.target_table is None and not is_redirected:
        return "It has no queue to go back to."
    if row.body_bytes is None:
        return "Its body is NULL: put back, it would wedge the queue."
    if row.has_target or is_redirected or database_alias.alias_of(Address(row.target_schema, row.target_table)):
        return None  # for another database the target judge decides
    return f"Its queue is gone: there is no queue table {row.target_table!r} in schema {row.target_schema!r}."


def clean(text: str | None, most: int | None = None) -> str | None:
    """Replace NUL and lone surrogates, which a text column rejects. The headers as received still hold them."""
    if text is None:
        return None
    shown = text[:most].replace("\0", "\N{SYMBOL FOR NULL}")
    return shown.encode("utf-8", "replace").decode("utf-8")
