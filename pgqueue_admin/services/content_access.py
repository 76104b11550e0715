"""What of messages a person may read: figures always; bodies, header values and what exceptions say by a right."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.models import AuditEntry, FailureGroup
from pgqueue_admin.monitor.lease_messages import LeaseMessage
from pgqueue_admin.monitor.message import StoredMessage
from pgqueue_admin.services.permissions import missing, refusal_for
from pgqueue_admin.transport.wire import headers as h

HIDDEN = "•••"  # stands for the value of a header
# Of these the value is a figure, a type, a time or a name by which messages are found: all others may carry content.
FIGURES = frozenset(
    {
        h.MESSAGE_ID, h.CORRELATION_ID, h.CONVERSATION_ID, h.RELATED_TO, h.MESSAGE_INTENT, h.ENCLOSED_MESSAGE_TYPES,
        h.CONTENT_TYPE, h.REPLY_TO_ADDRESS, h.ORIGINATING_ENDPOINT, h.ORIGINATING_MACHINE, h.TIME_SENT, h.DELIVER_AT,
        h.TIME_TO_BE_RECEIVED, h.VERSION, h.CONTROL_MESSAGE, h.RETRIES, h.RETRIES_TIMESTAMP, h.FL_RETRIES, h.FAILED_Q,
        h.TIME_OF_FAILURE, h.EXCEPTION_TYPE, h.PROCESSING_STARTED, h.PROCESSING_ENDED, h.PROCESSING_ENDPOINT,
        h.PROCESSING_MACHINE, h.FORWARD_DESTINATION, "NServiceBus.IsSagaTimeoutMessage", "Pgqueue.EditOf",
    }
)  # fmt: skip
_UNREADABLE = '"not shown"'  # no headers, as what it stands for is none

Stored = TypeVar("Stored", bound=StoredMessage)


@dataclass(frozen=True, slots=True)
class ContentAccess:
    """``refusal``: a sentence that says which right is missing; empty: all may be read.

    Each method gives what it was given, without what may not be read. Pages and Django admin read messages through it,
    so that no template has anything to hide. Acts never do: what is sent is what is stored.
    """

    refusal: str = ""

    def archived(self, message: ArchivedMessage) -> ArchivedMessage:
        return ArchivedMessage(_Withheld(message)) if self.refusal else message

    def stored(self, message: Stored) -> Stored:
        """Of a queue or a delayed table."""
        if not self.refusal:
            return message
        text = _UNREADABLE if message.unreadable else _without_content(message.headers_text)
        return replace(message, headers_text=text, headers_size=None)

    def finished(self, message: FinishedMessage) -> FinishedMessage:
        if not self.refusal:
            return message
        return replace(message, headers=_without_content(message.headers), body=None, exception_message=None)

    def lease(self, message: LeaseMessage) -> LeaseMessage:
        """Its kind is its type; the other fields are content."""
        return replace(message, fields={}) if self.refusal else message

    def failure(self, group: FailureGroup) -> FailureGroup:
        """Not for saving: without the message and the frame that its messages died of."""
        if not self.refusal:
            return group
        shown = copy(group)
        shown.message = shown.frame = ""
        return shown

    def entry(self, entry: AuditEntry) -> AuditEntry:
        """Not for saving: an edit names what was typed."""
        if not self.refusal or entry.verb != "edit":
            return entry
        shown = copy(entry)
        shown.before, shown.after, shown.bodies = _edit(entry.before), _edit(entry.after), None
        return shown

    def text(self, text: str) -> str:
        return "" if self.refusal else text


REFUSED = f"Reading what messages say {missing('read')}."
ALL = ContentAccess()
NOTHING = ContentAccess(REFUSED)


def of(person: Any) -> ContentAccess:
    return NOTHING if refusal_for(person, "read") else ALL


class _Withheld:
    """A row of the archive without its content."""

    __slots__ = ("_row",)

    def __init__(self, row: Any):
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name in _CONTENT:
            return None
        value = getattr(self._row, name)
        return _without_content(value) if name == "headers" else value


_CONTENT = {
    "exception_message", "exception_message_length", "stack_trace", "stack_trace_length", "details", "message",
    "headers_length",
}  # fmt: skip


def _without_content(text: str | None) -> str | None:
    """Headers with the names of all and the values of FIGURES."""
    try:
        found = h.parse(text)
    except h.HeadersUnreadable:
        return _UNREADABLE
    return h.dump(_hidden(found)) if found else text


def _hidden(headers: h.Headers) -> h.Headers:
    return {name: value if name in FIGURES or value is None else HIDDEN for name, value in headers.items()}


def _edit(said: Any) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
        return said
    return {**said, "headers": dict.fromkeys(said["headers"], HIDDEN)}
