"""Every header that this engine writes, on every kind of row, follows the sheet's rules (wire sheet 7.1)."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.transport import BehaviourChain, Tracing, Unrecoverable
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z"
ADDRESS = r'"[^"]+"\."[^"]+"'
FORMATS = {
    **dict.fromkeys([h.MESSAGE_ID, h.CORRELATION_ID, h.CONVERSATION_ID, h.RELATED_TO], GUID),
    **dict.fromkeys([h.EXCEPTION_DATA + "Message ID", h.EXCEPTION_DATA + "Transport message ID"], GUID),
    **dict.fromkeys([h.TIME_SENT, h.DELIVER_AT, h.RETRIES_TIMESTAMP, h.TIME_OF_FAILURE, h.RETRY_SUCCESSFUL], TIME),
    **dict.fromkeys([h.PROCESSING_STARTED, h.PROCESSING_ENDED], TIME),
    **dict.fromkeys([h.EXCEPTION_DATA + "Handler start time", h.EXCEPTION_DATA + "Handler failure time"], TIME),
    **dict.fromkeys([h.HOST_ID, h.ORIGINATING_HOST_ID], r"[0-9a-f]{32}"),
    **dict.fromkeys([h.REPLY_TO_ADDRESS, h.FAILED_Q, h.FORWARD_DESTINATION, h.RETRY_ACKNOWLEDGEMENT_QUEUE], ADDRESS),
    **dict.fromkeys([h.CONTROL_MESSAGE, h.START_NEW_TRACE], "True|False"),
    **dict.fromkeys([h.EXCEPTION_DATA + "Pipeline canceled", h.EXCEPTION_DATA + "Handler canceled"], "True|False"),
    h.TIME_TO_BE_RECEIVED: r"(\d+\.)?\d\d:\d\d:\d\d(\.\d{7})?",
    h.MESSAGE_INTENT: "Send|Publish|Reply",
    h.RETRIES: r"[1-9]\d*",
    h.ERROR_CODE: r"-?\d+",
    h.CONTENT_TYPE: "application/json",
    h.TRACE_PARENT: r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]",
    h.VERSION: r"\d+\.\d+\.\d+",
    h.RETRY_ACKNOWLEDGEMENT_SENT: "true",
}
WORDS = {h.ENCLOSED_MESSAGE_TYPES, h.RETRY_UNIQUE_MESSAGE_ID}
WORDS |= {h.ORIGINATING_ENDPOINT, h.ORIGINATING_MACHINE, h.PROCESSING_ENDPOINT, h.PROCESSING_MACHINE}
WORDS |= {h.HOST_DISPLAY_NAME, h.EXCEPTION_TYPE, h.INNER_EXCEPTION_TYPE, h.EXCEPTION_SOURCE}
WORDS |= {h.EXCEPTION_DATA + "Message type", h.EXCEPTION_DATA + "Handler type"}
TEXTS = {h.EXCEPTION_MESSAGE, h.EXCEPTION_STACK_TRACE}
SETTINGS = replace(
    QUICK,
    concurrency=1,
    immediate_retries=0,
    delayed_retries=1,
    delayed_retry_step=3600,
    audit_queue="audit",
)


@pytest.fixture
def left_behind(make_endpoint, handlers, connection):
    """Headers of every kind of row, by table, from an endpoint that uses every feature."""
    shop = make_endpoint("Shop", settings=SETTINGS)
    shop.subscribe("Shop.Placed")
    sales = make_endpoint(settings=SETTINGS, pipeline=BehaviourChain(tracing=Tracing()))

    @handlers.handle("Shop.Place")
    def place(order, context):
        context.send("Shop", {}, type="Shop.Charge", ttbr=timedelta(days=2, milliseconds=5))
        context.send('"public"."Shop"', {}, type="Shop.Later", delay=timedelta(hours=1))
        context.publish({}, type="Shop.Placed")
        context.reply({}, type="Shop.Answer")
        context.reply_code(3)

    @handlers.handle("Shop.Bad")
    def bad(order, context):
        try:
            raise LookupError("no such card")
        except LookupError as cause:
            raise (Unrecoverable if order else ValueError)("bad\norder 📦 \x7f") from cause

    retried = {h.RETRY_UNIQUE_MESSAGE_ID: "7e0fd852", h.RETRY_ACKNOWLEDGEMENT_QUEUE: '"public"."error"'}
    shop.send("Sales", {}, type="Shop.Place", headers=retried)
    shop.send("Sales", 0, type="Shop.Bad")
    shop.send("Sales", 1, type="Shop.Bad")
    sales.start()
    until(lambda: not rows(sales.dsn, "Sales"), 20)
    sales.stop()
    found = {table: rows(sales.dsn, table) for table in ("Shop", "audit", "error")}
    found["Sales.Delayed"] = connection.all('select headers, body from "Sales.Delayed"')
    return found


def test_every_written_header_parses_by_its_format(left_behind):
    assert {table: len(found) for table, found in left_behind.items()} == {
        "Shop": 4,
        "audit": 1,
        "error": 2,
        "Sales.Delayed": 2,
    }
    seen = set()
    for found in left_behind.values():
        for row in found:
            assert row.body is not None
            for name, value in h.parse(row.headers).items():
                assert value is not None
                assert name in TEXTS or re.fullmatch(FORMATS.get(name, r"\S+"), value), (name, value)
                seen.add(name)
    assert seen <= FORMATS.keys() | WORDS | TEXTS
    unseen = {h.TRACE_PARENT}  # no SDK here: tests/transport/test_tracing.py
    assert FORMATS.keys() - seen == unseen
