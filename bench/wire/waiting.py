"""Second half: no endpoint receives. Backlogs of each way to send, delayed rows, odd headers and bodies."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg

from bench.wire.case import Case
from bench.wire.shop import LEGACY, TRACE, Shop, command, tagged
from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.transport.wire import headers as h

ONE_BY_ONE, BATCH, BY_COPY, FEW = 20, bulk.FEW, bulk.MANY + 100, 5
ODD: h.Headers = {
    "Slash": "a/b\\c",
    "Quote": "\"'<script>",
    "Lines": "one\ntwo\ttab\r\x7f",
    "Nul": "\0",
    "Astral": "\U0001f6d2 ü 日本 \u202e",
    "Empty": "",
    "": "a name that is empty",
    "Null": None,
}
SALES, DELAYED, INVOICING = Address("public", "Sales"), Address("public", "Sales.Delayed"), Address(LEGACY, "Invoicing")
STRANGE, STRANGE_DELAYED = Address("public", "Strange"), Address("public", "Strange.Delayed")
_RAW = """insert into public."Strange" (id, headers, body) values (gen_random_uuid(), %(headers)s, '{}')"""
_RAW_DUE = 'insert into public."Strange.Delayed" (headers, body, due) values (%(headers)s, null, now())'


def leave(shop: Shop) -> list[Case]:
    _backlog(shop)
    _lives(shop)
    _odd(shop)
    _delayed(shop)
    _strange(shop)
    return list(_cases())


def _backlog(shop: Shop) -> None:
    def order(number: int) -> dict[str, int]:
        return {"OrderId": number}

    for number in range(ONE_BY_ONE):
        shop.web.send("Sales", order(number), type=command("PlaceOrder"), headers=tagged("one-by-one"))
    batch, copied = map(order, range(BATCH)), map(order, range(BY_COPY))
    shop.web.send_many("Sales", batch, type=command("PlaceOrder"), headers=tagged("batch"))
    shop.web.send_many("Sales", copied, type=command("PlaceOrder"), headers=tagged("by-copy"))
    with psycopg.connect(shop.web.dsn, options="-c timezone=America/New_York") as theirs:
        within = shop.web.within(theirs)
        within.send("Sales", {"OrderId": 0}, type=command("PlaceOrder"), headers=tagged("within"))
    for _ in range(FEW):
        shop.feed.send("Sales", b"\0\xff", type=command("PlaceOrder"), headers=tagged("send-only"))
        shop.web.send('"Legacy"."Invoicing"', {}, type=command("Invoice"), headers=tagged("other-schema"))


def _lives(shop: Shop) -> None:
    for case, ttbr in (("lives-20-days", timedelta(days=20)), ("expired", timedelta(milliseconds=1))):
        shop.web.send_many("Sales", range(FEW), type=command("QuotePrice"), headers=tagged(case), ttbr=ttbr)
    days, many = timedelta(days=9), range(BY_COPY)
    shop.web.send_many("Sales", many, type=command("QuotePrice"), headers=tagged("lives-by-copy"), ttbr=days)


def _odd(shop: Shop) -> None:
    large = {"OrderId": 1, "Note": "x" * 1_048_576}
    shop.web.send("Sales", {"OrderId": 1}, type=command("PlaceOrder"), headers=tagged("odd-headers") | ODD)
    shop.web.send("Sales", large, type=command("PlaceOrder"), headers=tagged("large-body"))
    shop.web.send("Sales", b"\xef\xbb\xbf{}", type=command("PlaceOrder"), headers=tagged("byte-order-mark"))
    control: h.Headers = {h.CONTROL_MESSAGE: "True"}
    shop.web.send("Sales", b"", type=command("PlaceOrder"), headers=tagged("control") | control)
    shop.web.send("Sales", {"OrderId": 3}, type=command("PlaceOrder"), headers=tagged("traced") | TRACE)
    bare = "Wire.Messages.Commands.PlaceOrder"
    shop.web.send("Sales", {"OrderId": 2}, type=bare, headers=tagged("bare-type"))


def _delayed(shop: Shop) -> None:
    in_a_month = datetime.now(UTC) + timedelta(days=30)
    send = shop.sales.send_many
    send("Billing", range(FEW), type=command("ChargeCard"), headers=tagged("delayed"), delay=timedelta(hours=2))
    send("Sales", range(FEW), type=command("PlaceOrder"), headers=tagged("delayed-until"), delay=in_a_month)
    send('"Legacy"."Invoicing"', range(FEW), type=command("Invoice"), headers=tagged("due"), delay=timedelta())


def _strange(shop: Shop) -> None:
    """No endpoint writes such rows, and ours has not received them yet: they are unchanged."""
    with shop.strange.connect() as connection:
        connection.run(_RAW, {"headers": "null"})
        connection.run(_RAW, {"headers": "{}"})
        connection.run(_RAW_DUE, {"headers": '{"Wire.Case":"due-body-null"}'})


def _cases() -> Iterator[Case]:
    yield Case("one-by-one", SALES, ONE_BY_ONE, "an insert each", "handles, in this order")
    yield Case("batch", SALES, BATCH, "one statement", "handles, in this order")
    yield Case("by-copy", SALES, BY_COPY, "a COPY", "handles, in this order")
    yield Case("within", SALES, 1, "in a psycopg transaction of the caller's, session in New York", "handles")
    yield Case("send-only", SALES, FEW, "no reply address; two bytes that are no text", "fails to read them")
    yield Case("other-schema", INVOICING, FEW, "a schema with a capital", "handles")
    yield Case("lives-20-days", SALES, FEW, "expires in 20 days", "handles, or drops them once they are over")
    yield Case("lives-by-copy", SALES, BY_COPY, "expires in 9 days, by COPY: one time for all", "handles them")
    yield Case("expired", SALES, FEW, "was to be received within a millisecond", "drops them silently")
    yield Case("odd-headers", SALES, 1, "slashes, quotes, NUL, astral, empty, a null value", "handles")
    yield Case("large-body", SALES, 1, "1 MiB", "handles")
    yield Case("byte-order-mark", SALES, 1, "UTF-8 with a mark in front", "handles")
    yield Case("control", SALES, 1, "no body", "acknowledges, audits")
    yield Case("bare-type", SALES, 1, "a full name without an assembly", "handles")
    yield Case("traced", SALES, 1, "traceparent", "handles, in that trace")
    yield Case("delayed", DELAYED, FEW, "by a duration, 2 hours", "moves to Sales when due, forwards to Billing")
    yield Case("delayed-until", DELAYED, FEW, "until an instant a month from then", "moves to Sales when due, handles")
    yield Case("due", DELAYED, FEW, "due already, and Sales was stopped", "forwards to Legacy.Invoicing at its start")
    hangs = "receives it again and again, for ever; take the row away"
    yield Case("headers-null", STRANGE, 1, "the header text is null", hangs, "null")
    yield Case("headers-none", STRANGE, 1, "the header text is {}", "no type: moves it to its error queue", "{}")
    yield Case("due-body-null", STRANGE_DELAYED, 1, "due, and its body is NULL", f"moves it to Strange, then {hangs}")
