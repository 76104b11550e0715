"""The recorded shop, drained by our endpoints: all messages they leave follow the wire format."""

from collections import Counter
from dataclasses import replace
from uuid import UUID

import pytest

from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.errors import MessageUnreadable, NoHandler
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.wire_rules import audited_breaches, breaches, dead_breaches, delayed_breaches
from tests.waiting import until

HANDLED = [
    "Commands.ChargeCard",
    "Commands.PlaceOrder",
    "Commands.ReserveStock",
    "Events.IOrderEvent",
    "Events.OrderBilled",
    "Events.OrderCancelled",
    "Events.InvoiceCreated",
]
TOLD = b'{"N":1}'
TABLES = ("Billing", "Mailer", "Sales")


def found(connection, table):
    return [row.headers for row in connection.all(f"select headers from {table}")]


def broken(rule, texts):
    """Kinds of violations, counted."""
    return Counter(breach for text in texts for breach in rule(text))


def test_the_rules_hold_for_what_endpoints_wrote(recording, connect):
    """Otherwise the rules would only describe our own messages."""
    connection = connect(recording)
    sample = (
        "(select headers from {} where headers like '%%\"NServiceBus.MessageId\"%%' order by seq desc limit 2000) t"
    )
    failed = f"{sample.format('error')} where headers like '%%FailedQ%%'"
    assert broken(dead_breaches, found(connection, failed)) == {}
    assert broken(audited_breaches, found(connection, sample.format("audit"))) == {}
    assert broken(breaches, found(connection, sample.format('"Billing"'))) == {}
    assert broken(delayed_breaches, found(connection, '"Sales.Delayed"')) == {}
    assert broken(delayed_breaches, found(connection, '"Billing.Delayed"')) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"NServiceBus.TimeSent":"2026-11-20T10:00:00Z"}', "TimeSent"),
        ('{"NServiceBus.MessageId":"5"}', "MessageId"),
        ('{"NServiceBus.ContentType":"application/json"}', "slash"),
        ('{"n":5}', "no text"),
        ('{"NServiceBus.ReplyToAddress":"Sales"}', "ReplyToAddress"),
        ('{"NServiceBus.MessageIntent":"send"}', "MessageIntent"),
        ('{"a":"🛒"}', "escapes"),
        ("[]", "object"),
    ],
)
def test_the_rules_can_be_broken(text, said):
    assert any(said in breach for breach in breaches(text))


@pytest.fixture
def shop(recorded_database, connect):
    """Delayed messages are due, the long backlog keeps its beginning, error and audit queue are empty."""
    connection = connect(recorded_database)
    connection.run('delete from "Sales" where seq > (select seq from "Sales" order by seq offset 300 limit 1)')
    connection.run("truncate error, audit")
    for table in ('"Billing.Delayed"', '"Legacy"."Invoicing.Delayed"', '"Shop.Web.Delayed"', '"Poison.Delayed"'):
        connection.run(f"update {table} set due = now() where isfinite(due)")
    return connection


def test_our_endpoints_drain_it(shop, recorded_database, spy):
    """Received, dropped when expired, moved when due, forwarded, retried later, audited, dead: none is lost."""
    handlers = Handlers()
    for name in HANDLED:
        handlers.handle(f"Shop.Messages.{name}")(answer)
    settings = replace(QUICK, immediate_retries=0, audit_queue="audit", concurrency=4)
    patient = replace(settings, delayed_retries=4, delayed_retry_step=3600)
    before = ids(shop)
    endpoints = [
        Endpoint(name, recorded_database, schema=schema, settings=chosen, handlers=handlers, observer=spy)
        for name, schema, chosen in [
            ("Shop.Web", "public", settings),
            ("Invoicing", "Legacy", replace(settings, error_queue='"public"."error"', audit_queue='"public"."audit"')),
            ("Billing", "public", patient),
            ("Mailer", "public", settings),
            ("Poison", "public", settings),
            ("Sales", "public", settings),
        ]
    ]
    endpoints[4].queue.create(shop)
    try:
        for endpoint in endpoints:
            endpoint.start()
        until(lambda: left(shop) == 0, 180)
    finally:
        for endpoint in endpoints:
            endpoint.stop()
    assert {"Shop.Messages.Commands.QuotePrice"} == set(spy.expired_types)
    assert {type(error) for error in spy.errors} == {ValueError, NoHandler, TableMissing, MessageUnreadable}
    assert shop.value("select count(*) from audit where body <> ''") == spy.counts["handled"] > 100
    assert shop.value("select count(*) from audit where body = %s", [TOLD]) > 0, "an event of ours came to a subscriber"
    dead, audited = (made_by_endpoints(found(shop, table)) for table in ("error", "audit"))
    later = found(shop, '"Billing.Delayed"')
    assert broken(dead_breaches, [text for text in dead if "FailedQ" in text]) == {}
    assert broken(audited_breaches, audited) == {}
    assert broken(delayed_breaches, later) == {}
    failed_in = {h.parse(text)[h.FAILED_Q] for text in dead}
    assert failed_in >= {'"Legacy"."Invoicing"', '"public"."Sales"', '"public"."Billing"'}
    assert any('"NoSuch.Queue"' in text for text in found(shop, "error"))
    assert {h.parse(text)[h.RETRIES] for text in later} <= {"1", "2"}
    answers = found(shop, '"Shop.Web"')
    assert answers == []
    after = Counter(h.parse(text).get(h.MESSAGE_ID) for text in [*dead, *audited, *later])
    assert {each for each in before if each} - set(after) == set()
    assert broken(breaches, [*dead, *audited, *later]) == {}


def made_by_endpoints(texts):
    """Without the poison messages, whose headers are unreadable or whose ids are invalid; they are unchanged."""
    return [text for text in texts if h.MESSAGE_ID in text and '"NServiceBus.MessageId":"m-' not in text]


def answer(body, context):
    """Every third fails; some reply, and some publish."""
    number = UUID(context.message.row_id).int % 3
    if number == 0:
        raise ValueError("declined/rejected: Größe \N{SHOPPING TROLLEY}\nsecond line")
    if number == 1:
        context.publish(TOLD, type="Shop.Messages.Events.OrderBilled")


def ids(connection):
    """Ids of all waiting or delayed messages that have not expired."""
    waiting = " union all ".join(
        f"""select headers from "{table}" where expires is null or expires > now() at time zone 'utc'"""
        for table in TABLES
    )
    delayed = """
        select headers from "Billing.Delayed" union all select headers from "Legacy"."Invoicing.Delayed"
        union all select headers from "Shop.Web.Delayed" union all select headers from "Legacy"."Invoicing" """
    return {h.parse(row.headers).get(h.MESSAGE_ID) for row in connection.all(f"{waiting} union all {delayed}")}


def left(connection):
    """Counted in one snapshot: otherwise a handler may write to one table while another is read."""
    waiting = (
        '"Sales"',
        '"Billing"',
        '"Mailer"',
        '"Legacy"."Invoicing"',
        '"Poison"',
        '"Shop.Web"',
        '"Shop.Web.Delayed"',
    )
    due = ('"Billing.Delayed"', '"Legacy"."Invoicing.Delayed"', '"Poison.Delayed"')
    counts = [f"(select count(*) from {table})" for table in waiting]
    counts += [f"(select count(*) from {table} where due <= now())" for table in due]
    return connection.value(f"select {' + '.join(counts)}")
