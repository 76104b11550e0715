"""Messages as JSON: jsonb accepts less than Python writes, and more than Python reads."""

import json
import re
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease.errors import MessageRefused, MessageUnreadable

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def written(session: Connection, message: Any) -> str:
    """Raises MessageRefused before the statement could fail the caller's transaction."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageRefused(f"The message cannot be written as JSON: {error}") from error
    if _NUL.search(text):
        raise MessageRefused("The message holds a NUL character, which jsonb does not take.")
    if not text.isascii() and session.as_json(message) != text:
        raise MessageRefused("The message holds letters that the encoding of this database does not have.")
    return text


def read(text: str) -> Any:
    """Raises MessageUnreadable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageUnreadable(f"The message cannot be read: {error}") from error
