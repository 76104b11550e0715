"""First half: what receiving leaves behind. Orders are handled, and each kind of failure happens once."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from bench.wire.case import Case
from bench.wire.shop import TRACE, Shop, command, tagged
from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time

ORDERS = 3
_RAW = 'insert into public."Sales" (id, headers, body) values (gen_random_uuid(), %(headers)s, %(body)s)'
_RAW_DUE = 'insert into public."Sales.Delayed" (headers, body, due) values (%(headers)s, null, now())'
_DUE = 'select count(*) from public."Sales.Delayed" where due <= now()'
_LEFT = f'select (select count(*) from public."Sales") + ({_DUE})'
ERROR, AUDIT, BILLING, MAILER = (Address("public", name) for name in ("error", "audit", "Billing", "Mailer"))
NODE, DELAYED = Address("public", "Shop.Web.node-1"), Address("public", "Sales.Delayed")


def leave(shop: Shop) -> list[Case]:
    _send(shop)
    shop.sales.start()
    _drained(shop)
    shop.sales.stop()
    return list(_cases())


def _send(shop: Shop) -> None:
    to_node: h.Headers = {h.REPLY_TO_ADDRESS: str(shop.web.instance_queue)}
    for number in range(ORDERS):
        order = {"OrderId": number}
        shop.web.send("Sales", order, type=command("PlaceOrder"), headers=tagged("handled") | to_node)
    send = shop.web.send
    send("Sales", b"", type=command("PlaceOrder"), headers=tagged("empty"))
    send("Sales", {}, type=command("FailAndRetry"), headers=tagged("delayed-retry"))
    once: h.Headers = {h.RETRIES: "1", h.RETRIES_TIMESTAMP: wire_time(datetime.now(UTC))}
    send("Sales", {}, type=command("FailAndRetry"), headers=tagged("exhausted") | once)
    send("Sales", {}, type=command("FailForGood"), headers=tagged("unrecoverable"))
    send("Sales", b'{"OrderId": 1, "Note": no', type=command("PlaceOrder"), headers=tagged("body-unreadable"))
    send("Sales", {}, type=command("Nobody.Handles"), headers=tagged("no-handler"))
    again: h.Headers = {h.RETRY_UNIQUE_MESSAGE_ID: str(uuid4()), h.RETRY_ACKNOWLEDGEMENT_QUEUE: '"public"."error"'}
    send("Sales", {}, type=command("Succeed"), headers=tagged("retried") | again)
    shop.sales.send(
        "Decommissioned.Reminders", {}, type=command("Remind"), delay=timedelta(), headers=tagged("forward-failed")
    )
    for kind in ("Trace", "FailForGood"):
        send("Sales", {}, type=command(kind), headers=tagged("traced") | TRACE)
    with shop.sales.connect() as connection:
        connection.run(_RAW, {"headers": '{"Wire.Case":"headers-cut-off", "NServiceBus.Mess', "body": b"{}"})
        connection.run(_RAW, {"headers": '{"Wire.Case":"body-null"}', "body": None})
        connection.run(_RAW, {"headers": "null", "body": b"{}"})
        connection.run(_RAW, {"headers": "{}", "body": b"{}"})
        connection.run(_RAW_DUE, {"headers": '{"Wire.Case":"due-body-null"}'})


def _drained(shop: Shop, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    with shop.sales.connect() as connection:
        while connection.value(_LEFT):
            if time.monotonic() > deadline:
                raise SystemExit(f"Sales has not handled its messages within {seconds:g} s")
            time.sleep(0.1)


def _cases() -> Iterator[Case]:
    imported = "the platform imports it as a failed message of Sales; its retry is handled or fails again"
    yield Case("sent-by-handler", BILLING, ORDERS, "sent by a handler, one commit with its message's end", "handles")
    yield Case("published", BILLING, ORDERS, "an event, subscribed by its base interface", "handles")
    yield Case("published", MAILER, ORDERS, "an event, subscribed by its own type", "handles")
    yield Case("reply", NODE, ORDERS, "an answer to an instance that is not there", "its handler, or its callback")
    yield Case("reply-code", NODE, ORDERS, "an answer that is the number 7", "a callback of int; else acknowledged")
    yield Case("delayed-retry", DELAYED, 1, "failed twice, comes back in a day", "goes on with retry 1 of its own")
    yield Case("exhausted", ERROR, 1, "failed after its delayed retry; an inner exception", imported)
    yield Case("unrecoverable", ERROR, 1, "failed at once", imported)
    yield Case("body-unreadable", ERROR, 1, "JSON cut off", imported)
    yield Case("no-handler", ERROR, 1, "a type that nobody handles", imported)
    yield Case("forward-failed", ERROR, 1, "due, and its queue does not exist", "imported; FailedQ names no queue")
    yield Case("headers-cut-off", ERROR, 1, "moved as it is, no headers added", "cannot be imported")
    yield Case("body-null", ERROR, 1, "NULL became empty", imported)
    yield Case("due-body-null", ERROR, 1, "due, moved by us with its NULL, which became empty", imported)
    says = '%"NServiceBus.ExceptionInfo.Message":"{}%'.format
    null, nothing = says("the headers are null"), says("the headers name no message type")
    yield Case("headers-null", ERROR, 1, "the header text was null; now it is the fault headers", imported, null)
    yield Case("headers-none", ERROR, 1, "the header text was {}; now it is the fault headers", imported, nothing)
    yield Case("traced", ERROR, 1, "traceparent, and StartNewTrace since it failed", imported)
    audited = "the platform imports it as an audit message of Sales"
    yield Case("handled", AUDIT, ORDERS, "the copy of an order that was handled; expires in 30 days", audited)
    yield Case("empty", AUDIT, 1, "no body, so no handler was called", audited)
    yield Case("retried", AUDIT, 1, "the platform's retry was handled, and confirmed by us", audited)
    yield Case("traced", AUDIT, 1, "traceparent as it came", audited)
    yield Case("traced", BILLING, 1, "sent by a handler, in the trace of its message", "handles, in that trace")
    like = '%"ServiceControl.Retry.Successful"%'
    yield Case("retry-confirmed", ERROR, 1, "a retried message was handled", "the platform marks it resolved", like)
