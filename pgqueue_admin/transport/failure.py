"""A failed handling attempt, as retries, the archive and the error queue see it."""

import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.errors import MessageUnreadable, Unrecoverable
from pgqueue_admin.transport.recoverability_actions import Action

MOST_MESSAGE = 16_384  # wire sheet 7.2
MOST_TRACE = 131_072  # characters: an exception's message may contain a whole file, and the trace repeats it


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
    forward_to: str = ""  # the destination that refused a delayed message, as its sender wrote it
    data: dict[str, str] = field(default_factory=dict)
    action: Action | None = None  # the policy's decision
    failed_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def failure_of(error: BaseException, endpoint: str, queue: Address, *, recoverable: bool, **more: object) -> Failure:
    """``recoverable``: by the endpoint's rules; an Unrecoverable never is. ``more``: other fields of Failure."""
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
    """The error's message. Never raises: a failing ``str`` made the original retry for ever (wire sheet 13)."""
    try:
        return clean(str(error))
    except BaseException as second:
        return f"(its message could not be read: {type_name(type(second))})"


def source(error: BaseException) -> str:
    """Top-level package of the code that raised."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace else type(error).__module__
    return str(module).partition(".")[0]


def stack_trace(error: BaseException) -> str:
    """Python's traceback with causes, from the handler down, without the engine's frames."""
    try:
        return clean("".join(traceback.format_exception(type(error), error, _below_engine(error.__traceback__))))
    except BaseException:
        return f"{type_name(type(error))}: {message_of(error)}"


def shortened(text: str, most: int) -> str:
    """Cut out the middle: .NET's traces begin with the latest call, Python's end with it."""
    left_out = len(text) - most
    if left_out <= 0:
        return text
    return f"{text[: most // 2]}\n… {left_out:,} characters are left out here …\n{text[-(most // 2) :]}"


def clean(text: str) -> str:
    """Replace lone surrogates: UTF-8, and so a header, cannot contain them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _below_engine(trace: TracebackType | None) -> TracebackType | None:
    start = trace
    while start and start.tb_frame.f_globals.get("__name__", "").startswith("pgqueue_admin.transport."):
        start = start.tb_next
    return start or trace
