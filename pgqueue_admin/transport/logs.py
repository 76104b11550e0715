"""Adds the current message to log records, of the engine and of handlers."""

import json
import logging
import re
import threading
from datetime import UTC, datetime
from typing import Any

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage

FIELDS = ("message_id", "conversation_id", "correlation_id", "message_type", "queue")


class _Here(threading.local):
    message: IncomingMessage | None = None


here = _Here()  # the message that this thread handles


def about(message: IncomingMessage) -> dict[str, str]:
    """The FIELDS for ``extra=`` of a log call."""
    headers = message.headers
    return {
        "message_id": message.message_id,
        "conversation_id": headers.get(h.CONVERSATION_ID) or "",
        "correlation_id": headers.get(h.CORRELATION_ID) or "",
        "message_type": message.type,
        "queue": str(message.queue.table),
    }


class MessageLogFilter(logging.Filter):
    """For a logging handler: adds the FIELDS to each record, empty if no message is being handled."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "message_id"):
            vars(record).update(about(here.message) if here.message else dict.fromkeys(FIELDS, ""))
        return True


# Characters that end a line for some reader: str.splitlines knows more than terminals do. Tabs are kept.
_ESCAPED = {at: repr(chr(at))[1:-1] for at in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029) if at != 0x09}
_KEPT_IN_TRACES = {at: text for at, text in _ESCAPED.items() if at != 0x0A}
_LIKE_A_LINE_OF_ITS_OWN = re.compile(r"^(?=\d{4}-)", re.MULTILINE)


class LineFormatter(logging.Formatter):
    """A line for people. Ids and texts come from messages: they must not forge a line of their own.

    A traceback has many lines, and also such texts: lines that look like the start of a record are indented.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(_ESCAPED)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return _LIKE_A_LINE_OF_ITS_OWN.sub(" ", super().formatException(ei).translate(_KEPT_IN_TRACES))


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the FIELDS that are not empty."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "text": record.getMessage(),
            **{name: value for name in FIELDS if (value := getattr(record, name, ""))},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
