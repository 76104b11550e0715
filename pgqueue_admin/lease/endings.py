"""Endings of messages, with texts that the archive's columns accept."""

import json
from typing import Any

from pgqueue_admin.dialects.lease_store import Ending, Result
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.transport import failure

MOST_DETAILS = 8192  # bytes
MOST_NAME = 500  # characters: exception types are indexed


def ending(
    lease: LeasedMessage,
    result: Result,
    details: Any = None,
    kind: str | None = None,
    error: BaseException | None = None,
) -> Ending:
    """``details``: a text, or any value, written as JSON; cut at MOST_DETAILS. ``kind``: the message's."""
    base = Ending(lease.id, lease.token, result, _details(details), _name(kind))
    if error is None:
        return base
    said = failure.message_of(error)
    return base._replace(
        details=base.details or stored(f"{failure.type_name(type(error))}: {said}", MOST_DETAILS),
        exception_type=_name(failure.type_name(type(error))),
        exception_message=stored(said[: failure.MOST_MESSAGE]),
        stack_trace=stored(failure.shortened(failure.stack_trace(error), failure.MOST_TRACE)),
    )


def stored(text: str, most_bytes: int | None = None) -> str:
    """Replace NUL and lone surrogates, which a text column rejects; cut between characters."""
    shown = text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace")
    return shown[:most_bytes].decode("utf-8", "ignore")


def _name(name: str | None) -> str | None:
    return None if name is None else stored(name[:MOST_NAME])


def _details(details: Any) -> str | None:
    if details is None:
        return None
    return stored(details if isinstance(details, str) else _as_text(details), MOST_DETAILS)


def _as_text(details: Any) -> str:
    """A handler may return anything; the message was handled regardless."""
    try:
        return json.dumps(details, ensure_ascii=False, default=str)
    except Exception as error:
        return f"({type(details).__name__}, which cannot be written: {failure.message_of(error)})"
