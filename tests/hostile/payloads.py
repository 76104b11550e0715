"""What nobody should send, and somebody does."""

import json
from typing import Any

MARKUP = "</script><script>pwned()</script>\"'><img src=x onerror=pwned()><b id=pwned>{{ 7 }}{% now %}&amp;\\"
TURNED = "\u202egnp\u202c\u2066exe\u200b\ufeff"  # bidi controls and characters without a width
LINK = "javascript:pwned()"
SCHEMA = "We\"ird. <script>pwned()</script>/~2F'%25"
NAMES = (
    MARKUP[:60],
    TURNED + " turned",
    'quo"ted""',
    "apo'stroph",
    "Shop.Sales.Orders",
    ".hidden",
    "..",
    ".",
    "~",
    "~2E~2F~7E",
    "%2e%2e%2f",
    "100%",
    "%s %(name)s {table} {0}",
    "a/b//c",
    "/",
    "back\\slash",
    "CAPITALS",
    "messages",
    "ends",
    "semi;colon?query=1#fragment&amp;",
    " blanks around ",
    "line\nend\ttab\r",
    "Zażółć gęślą 队列 🐘",
    "ünï" + "x" * 50,  # 55 bytes
    "x" * 55,
    "y" * 63,  # as long as a name can be: its delayed table's cannot be told
    LINK,
    "-1",
    "null",
)


def headers(**more: Any) -> str:
    """A failed message's headers with markup in every one that a page shows."""
    named = {
        "MessageId": f"id {MARKUP}",
        "EnclosedMessageTypes": f"Shop.{MARKUP}, Shop, Version=1",
        "ContentType": f"text/{MARKUP}",
        "OriginatingEndpoint": MARKUP,
        "OriginatingMachine": TURNED + MARKUP,
        "ProcessingEndpoint": MARKUP,
        "ProcessingMachine": MARKUP,
        "ReplyToAddress": MARKUP,
        "RelatedTo": MARKUP,
        "ConversationId": LINK,
        "CorrelationId": MARKUP,
        "TimeToBeReceived": MARKUP,
        "TimeSent": MARKUP,
        "DeliverAt": "9999-99-99 99:99:99:999999 Z",
        "Retries": MARKUP,
        "Retries.Timestamp": MARKUP,
        "TimeOfFailure": "0000-00-00",
        "ExceptionInfo.ExceptionType": f"Shop.{MARKUP}+Exception",
        "ExceptionInfo.InnerExceptionType": MARKUP,
        "ExceptionInfo.Message": f"{MARKUP}\n{TURNED}\0\r",
        "ExceptionInfo.HelpLink": LINK,
        "ExceptionInfo.Source": MARKUP,
        "ExceptionInfo.StackTrace": f"   at Shop.{MARKUP}() in C:\\{MARKUP}:line 7\n{TURNED}\0 --- End of {MARKUP} ---",
        f"ExceptionInfo.Data.{MARKUP}": MARKUP,
    }
    odd = {MARKUP: MARKUP, TURNED: TURNED, "": "", "\0": "\0", "link": LINK, "null": None}
    return json.dumps({f"NServiceBus.{name}": value for name, value in named.items()} | odd | more)


DEEP = "[" * 3_000
UNREADABLE = (
    "",
    "null",
    "[]",
    '{"cut":"sho',
    '{"n":5}',
    "plain text",
    MARKUP,
    TURNED,
    DEEP,
    '{"half":"\\udc00 alone"}',
    '{"a":"\\ud800"',
    "\ufeff{}",
)
BODIES = (
    None,
    b"",
    b"\0\0\0",
    b"\xff\xfe\xfd",
    MARKUP.encode(),
    TURNED.encode(),
    json.dumps({MARKUP: [MARKUP, TURNED, "\ud800", "\0", 1e999]}).encode(),
    f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b '{MARKUP}'>]><a>&b;</a>".encode(),
    DEEP.encode(),
    b'{"cut": "sho',
)

# for every name that any page reads from its address
QUERIES = (
    "", "\0", MARKUP, TURNED, LINK, "-1", "0", "1" * 30, "9" * 5_000, "1e9", "NaN", "²", "٣", "../../etc/passwd", "%",
    "'; drop table auth_user; --", "seq:>" + "9" * 40, "seq:<-5", "is:expired", "queue:", 'queue:"', "queue:\0", "op:²",
    "id:1", "state:x", "-type:x", "(", '"', "error:" + MARKUP, "x" * 3_000, "W10", "WzFd", "WyJhIl0", "bnVsbA",
    "WzFlOTk5XQ",  # [1e999]
    "WzEwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDBd",  # [10**25]
    "Wy0xXQ",  # [-1]
    "WyIyMDI2LTEzLTQ1VDAwOjAwOjAwWiIsMV0",  # ["2026-13-45T00:00:00Z",1]
    "WyI5OTk5LTEyLTMxVDIzOjU5OjU5KzAwOjAwIiw5OTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ",  # ["9999-12-31T23:59:59+00:00",9999…]
    "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwxXQ",  # ["0001-01-01T00:00:00+23:59",1]
    "WyIyMDI2LTExLTIwIDEwOjAwOjAwOjAwMDAwMCBaIiwxXQ",  # ["2026-11-20 10:00:00:000000 Z",1]
)  # fmt: skip
