"""Spans, and the W3C headers that join them across endpoints (wire sheet 7.2)."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pgqueue_admin.transport import BehaviourChain, Tracing, Unrecoverable
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE, CHARGE, PLACED = "Shop.PlaceOrder", "Shop.Charge", "Shop.Placed"
THEIRS = "00-afe4f940e3069fde3fe791d9694ebb2b-1a846638c3273d6a-01"
ALONE = replace(QUICK, concurrency=1, immediate_retries=0)


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def traced(make_endpoint, spans):
    """``traced("Sales")``: an endpoint whose spans are in ``spans``."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    def traced(name, settings=ALONE):
        return make_endpoint(name, settings=settings, pipeline=BehaviourChain(tracing=Tracing(provider)))

    return traced


def by_name(spans):
    return {span.name: span for span in spans.get_finished_spans()}


def parent_of(text):
    _, trace, span, _ = h.parse(text)["traceparent"].split("-")
    return int(trace, 16), int(span, 16)


def ids(span):
    return span.context.trace_id, span.context.span_id


def test_a_message_is_handled_in_its_senders_trace(traced, handlers, spans):
    sales, billing = traced("Sales"), traced("Billing")
    handlers.handle(CHARGE)(lambda order, context: None)

    @handlers.handle(PLACE)
    def place(order, context):
        context.send("Billing", order, type=CHARGE)

    message_id = sales.send("Sales", {}, type=PLACE)
    (row,) = rows(sales.dsn, "Sales")
    (sent,) = spans.get_finished_spans()
    assert (sent.name, parent_of(row.headers)) == ("send message", ids(sent))
    sales.start()
    billing.start()
    until(lambda: len(spans.get_finished_spans()) == 6, 20)
    assert {span.context.trace_id for span in spans.get_finished_spans()} == {sent.context.trace_id}
    both = [span for span in spans.get_finished_spans() if span.name == "process message"]  # in the order of their ends
    (processed,) = [span for span in both if span.attributes["nservicebus.message_id"] == message_id]
    handler = next(span for span in spans.get_finished_spans() if span.name.endswith("place"))
    assert (processed.parent.span_id, handler.parent.span_id) == (sent.context.span_id, processed.context.span_id)
    assert processed.attributes["nservicebus.message_id"] == message_id
    assert processed.attributes["nservicebus.enclosed_message_types"] == PLACE
    assert processed.attributes["nservicebus.native_message_id"] == str(row.id)


def test_event_starts_a_new_trace_with_a_link(traced, handlers, spans):
    """Events and delayed messages both do."""
    endpoint = traced("Sales")
    endpoint.subscribe(PLACED)
    handlers.handle(PLACED)(lambda order, context: None)
    endpoint.publish({}, type=PLACED)
    endpoint.start()
    until(lambda: "process message" in by_name(spans), 20)
    published, processed = by_name(spans)["publish event"], by_name(spans)["process message"]
    assert processed.parent is None
    assert processed.context.trace_id != published.context.trace_id
    assert [link.context.span_id for link in processed.links] == [published.context.span_id]


def test_a_delayed_message_wants_one(traced, connection):
    endpoint = traced("Sales")
    endpoint.send("Sales", {}, type=PLACE, delay=timedelta(hours=1))
    headers = h.parse(connection.value('select headers from "Sales.Delayed"'))
    assert headers[h.START_NEW_TRACE] == "True"
    assert h.TRACE_PARENT in headers


@pytest.mark.parametrize("is_traced", [True, False])
def test_a_traced_message_that_is_put_away_wants_one(make_endpoint, traced, handlers, spans, is_traced):
    """Even without tracing here, as in the original."""
    endpoint = traced("Sales") if is_traced else make_endpoint(settings=ALONE)

    @handlers.handle(PLACE)
    def place(order, context):
        raise Unrecoverable("no")

    for headers in ({"traceparent": THEIRS, "tracestate": "shop=1"}, {}):
        endpoint.send("Sales", {}, type=PLACE, headers=headers)
    if not is_traced:
        endpoint.start()
        until(lambda: len(rows(endpoint.dsn, "error")) == 2, 20)
        theirs, ours = (h.parse(row.headers) for row in rows(endpoint.dsn, "error"))
        assert (theirs["traceparent"], theirs["tracestate"], theirs[h.START_NEW_TRACE]) == (THEIRS, "shop=1", "True")
        assert (h.TRACE_PARENT in ours, ours[h.START_NEW_TRACE]) == (False, "False")
    else:
        endpoint.start()
        until(lambda: len(rows(endpoint.dsn, "error")) == 2, 20)
        until(lambda: "process message" in by_name(spans))
        failed = by_name(spans)["process message"]
        assert (failed.status.is_ok, [event.name for event in failed.events]) == (False, ["exception"])


def test_without_an_sdk_nothing_is_written(make_endpoint, handlers):
    """A no-op tracer has no trace to pass on; the incoming headers are kept."""
    endpoint = make_endpoint(settings=replace(ALONE, audit_queue="audit"), pipeline=BehaviourChain(tracing=Tracing()))
    handlers.handle(PLACE)(lambda order, context: None)
    endpoint.send("Sales", {}, type=PLACE)
    assert "traceparent" not in h.parse(rows(endpoint.dsn, "Sales")[0].headers)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "audit"), 20)


def test_the_package_is_not_imported_unless_asked_for():
    """It costs half a second and some megabytes; if it is missing, requesting it names it."""
    code = """
import sys
from pgqueue_admin.transport import Endpoint, Tracing
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
sys.modules["opentelemetry"] = None
try:
    Tracing()
except RuntimeError as error:
    assert "pip install opentelemetry-api" in str(error)
else:
    raise SystemExit("nothing was said")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
