"""A failed handling attempt, as retries, the archive and the error queue see it."""

import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.errors import MessageUnreadable, Unrecoverable
from pgqueue_admin.transport.recoverability_actions import Action

MOST_MESSAGE = 16_384  # wire sheet 7.2
MOST_TRACE = 131_072  # characters: an exception may have the whole of a file in its message, and a trace repeats it


@dataclass(frozen=True, slots=True)
class Failure:
    """The error, where and when. ``attempts`` counts attempts in this process, this one included."""

    endpoint: str
    queue: Address
    exception_type: str
    message: str
    stack_trace: str
    inner_exception_type: str | None = None
    source: str = ""
    recoverable: bool = True
    unreadable: bool = False
    attempts: int = 1
    forward_to: str = ""  # a delayed message's destination that did not take it, as its sender wrote it
    data: dict[str, str] = field(default_factory=dict)
    action: Action | None = None  # what the policy says to do next
    failed_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def failure_of(error: BaseException, endpoint: str, queue: Address, *, recoverable: bool, **more: object) -> Failure:
    """``recoverable``: as the endpoint has it; an Unrecoverable never is. ``more``: other fields of Failure."""
    return Failure(
        endpoint,
        queue,
        exception_type=type_name(type(error)),
        message=message_of(error)[:MOST_MESSAGE],
        stack_trace=shortened(stack_trace(error), MOST_TRACE),
        inner_exception_type=type_name(type(error.__cause__)) if error.__cause__ else None,
        source=source(error),
        recoverable=recoverable and not isinstance(error, Unrecoverable),
        unreadable=isinstance(error, MessageUnreadable),
        **more,  # type: ignore[arg-type]
    )


def type_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """Never raises: an exception that cannot say its message kept the original retrying for ever (wire sheet 13)."""
    try:
        return clean(str(error))
    except BaseException as second:
        return f"(its message could not be read: {type_name(type(second))})"


def source(error: BaseException) -> str:
    """The top package of the code that raised."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace else type(error).__module__
    return str(module).partition(".")[0]


def stack_trace(error: BaseException) -> str:
    """Python's own text, causes and all, from the handler down: the engine's frames say nothing."""
    try:
        return clean("".join(traceback.format_exception(type(error), error, _below_engine(error.__traceback__))))
    except BaseException:
        return f"{type_name(type(error))}: {message_of(error)}"


def shortened(text: str, most: int) -> str:
    """Without its middle: the latest call is at the beginning of .NET's traces, and at the end of Python's."""
    left_out = len(text) - most
    if left_out <= 0:
        return text
    return f"{text[: most // 2]}\n… {left_out:,} characters are left out here …\n{text[-(most // 2) :]}"


def clean(text: str) -> str:
    """Half characters can be in no UTF-8 text, so not in a header."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _below_engine(trace: TracebackType | None) -> TracebackType | None:
    start = trace
    while start and start.tb_frame.f_globals.get("__name__", "").startswith("pgqueue_admin.transport."):
        start = start.tb_next
    return start or trace
