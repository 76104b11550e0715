"""The error of a dead message: the exception, and the frames of its own code."""

from dataclasses import dataclass
from functools import cached_property

from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.formatting import stack_traces
from pgqueue_admin.transport.failure import MOST_MESSAGE
from pgqueue_admin.transport.wire.type_names import short_type


@dataclass
class MessageError:
    type: str
    message: str
    trace: str
    full: bool  # the trace as received, not only its own frames
    message_more: int = 0  # characters of each that are left out
    trace_more: int = 0
    withheld: str = ""
    message_is_cut: bool = False  # by the archive: the headers have all of it

    @property
    def short_type(self) -> str:
        return short_type(self.type) if self.type else ""

    @property
    def copied(self) -> str:
        return f"{self.trace}\n… {self.trace_more:,} more characters" if self.trace_more else self.trace

    @cached_property
    def runs(self) -> list[stack_traces.FrameRun]:
        return stack_traces.runs(self.trace)

    @cached_property
    def frames(self) -> int:
        return stack_traces.frames(self.trace)


def of_archived(facts: MessageSummary, full: bool) -> MessageError | None:
    """None if nothing was thrown: a confirmation, or an unreadable message."""
    message = facts.archived
    assert message
    if not (message.exception_type or message.exception_message or message.stack_trace):
        return None
    said, trace = message.exception_message or "", message.stack_trace or ""
    return MessageError(
        message.exception_type or "",
        said,
        trace,
        full,
        message_more=(message.exception_message_length or 0) - len(said),
        trace_more=(message.stack_trace_length or 0) - len(trace),
        withheld=facts.withheld,
        message_is_cut=message.exception_message_length == MOST_MESSAGE,
    )
