"""OpenTelemetry: spans named as the original's, joined across endpoints by W3C headers (wire sheet 7.2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage

SCOPE = "pgqueue_admin.transport"
_TAGS = {
    "nservicebus.message_id": h.MESSAGE_ID,
    "nservicebus.correlation_id": h.CORRELATION_ID,
    "nservicebus.conversation_id": h.CONVERSATION_ID,
    "nservicebus.related_to": h.RELATED_TO,
    "nservicebus.message_intent": h.MESSAGE_INTENT,
    "nservicebus.enclosed_message_types": h.ENCLOSED_MESSAGE_TYPES,
    "nservicebus.content_type": h.CONTENT_TYPE,
    "nservicebus.reply_to_address": h.REPLY_TO_ADDRESS,
    "nservicebus.originating_endpoint": h.ORIGINATING_ENDPOINT,
    "nservicebus.delayed_retries": h.RETRIES,
}
_SENT = {"Publish": "publish event", "Reply": "reply"}


class Tracing:
    """Needs the package opentelemetry-api. Without a configured SDK its spans cost little and go nowhere."""

    def __init__(self, provider: Any = None):
        """``provider``: a TracerProvider; the global one, if none is given. Raises RuntimeError without the package."""
        try:
            from opentelemetry import propagate, trace
        except ImportError as error:
            raise RuntimeError("Tracing needs the package opentelemetry-api: pip install opentelemetry-api") from error
        self._trace, self._propagate = trace, propagate
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=provider)

    @contextmanager
    def processing(self, message: IncomingMessage) -> Iterator[None]:
        """A span in the sender's trace, or in a new trace with a link to it, as the sender chose."""
        theirs = self._propagate.extract(_given(message.headers))
        alone = (message.headers.get(h.START_NEW_TRACE) or "").lower() == "true"
        sender = self._trace.get_current_span(theirs).get_span_context()
        links = [self._trace.Link(sender)] if alone and sender.is_valid else []
        if alone:
            theirs = self._trace.set_span_in_context(self._trace.INVALID_SPAN, theirs)
        tags = {**_tags(message.headers), "nservicebus.native_message_id": message.row_id}
        kind = self._trace.SpanKind.CONSUMER
        with self._tracer.start_as_current_span("process message", theirs, kind, tags, links):
            yield

    @contextmanager
    def handling(self, handler: str) -> Iterator[None]:
        tags = {"nservicebus.handler.handler_type": handler}
        with self._tracer.start_as_current_span(handler, attributes=tags):
            yield

    def sent(self, headers: h.Headers) -> h.Headers:
        """Add the trace context, unless the caller gave one. A delayed message starts its own trace."""
        if h.TRACE_PARENT in headers:
            return headers
        name = _SENT.get(headers.get(h.MESSAGE_INTENT) or "", "send message")
        with self._tracer.start_as_current_span(name, kind=self._trace.SpanKind.PRODUCER, attributes=_tags(headers)):
            carrier: dict[str, str] = {}
            self._propagate.inject(carrier)
        delayed = h.FORWARD_DESTINATION in headers and h.TRACE_PARENT in carrier
        return {**headers, **carrier, **({h.START_NEW_TRACE: "True"} if delayed else {})}


def _given(headers: h.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if value is not None}


def _tags(headers: h.Headers) -> dict[str, str]:
    return {tag: value for tag, name in _TAGS.items() if (value := headers.get(name))}
