"""The endpoints of the dump and their handlers: small, with each failure on purpose."""

from typing import Any

from bench.wire.case import TAG
from pgqueue_admin.transport import (
    BehaviourChain,
    Endpoint,
    EndpointSettings,
    Handlers,
    MessageContext,
    RawSerializer,
    Serializers,
    Tracing,
    Unrecoverable,
)
from pgqueue_admin.transport.wire import headers as h

ASSEMBLY = "Wire.Messages, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null"
LEGACY = "Legacy"  # a schema with a capital
A_DAY = 86_400.0
TRACE: h.Headers = {h.TRACE_PARENT: "00-afe4f940e3069fde3fe791d9694ebb2b-1a846638c3273d6a-01"}

# one immediate and one delayed retry, due in a day: a delayed message is still there when the dump is restored
RETRYING = EndpointSettings(
    peek_delay=0.1,
    concurrency=2,
    immediate_retries=1,
    delayed_retries=1,
    delayed_retry_step=A_DAY,
    on_exhausted="error_queue",
    audit_queue="audit",
    audit_ttbr=30 * A_DAY,
    create_message_body_computed_column=True,
)
PLAIN = EndpointSettings(on_exhausted="error_queue")

handlers = Handlers()


def command(name: str) -> str:
    return f"Wire.Messages.Commands.{name}, {ASSEMBLY}"


def event(name: str) -> list[str]:
    return [f"Wire.Messages.Events.{name}, {ASSEMBLY}", f"Wire.Messages.Events.IOrderEvent, {ASSEMBLY}"]


def tagged(case: str) -> dict[str, str | None]:
    return {TAG: case}


@handlers.handle("Wire.Messages.Commands.PlaceOrder")
def place_order(order: dict[str, Any], context: MessageContext) -> None:
    of_it = {"OrderId": order["OrderId"]}
    context.send("Billing", of_it, type=command("ChargeCard"), headers=tagged("sent-by-handler"))
    context.publish(of_it, type=event("OrderPlaced"), headers=tagged("published"))
    context.reply(of_it, type=f"Wire.Messages.Replies.OrderAccepted, {ASSEMBLY}", headers=tagged("reply"))
    context.reply_code(7, headers=tagged("reply-code"))


@handlers.handle("Wire.Messages.Commands.FailAndRetry")
def fail(message: Any, context: MessageContext) -> None:
    cards: dict[str, str] = {}
    try:
        cards["of this customer"]
    except KeyError as missing:
        raise ConnectionError("the bank is away: «later»\nline two <b>&</b> \U0001f4b3") from missing


@handlers.handle("Wire.Messages.Commands.FailForGood")
def fail_for_good(message: Any, context: MessageContext) -> None:
    raise Unrecoverable("this order can never be charged")


@handlers.handle("Wire.Messages.Commands.Trace")
def trace(message: Any, context: MessageContext) -> None:
    context.send("Billing", {}, type=command("ChargeCard"), headers=tagged("traced"))


@handlers.handle("Wire.Messages.Commands.Succeed")
def succeed(message: Any, context: MessageContext) -> None:
    """A message that the platform retried is confirmed without work here."""


class Shop:
    """All endpoints that send or receive; ``sales`` receives in the first half, and none in the second."""

    def __init__(self, dsn: str):
        self.sales = Endpoint(
            "Sales", dsn, settings=RETRYING, handlers=handlers, pipeline=BehaviourChain(tracing=Tracing())
        )
        self.strange = Endpoint("Strange", dsn, settings=PLAIN)  # gets the messages that stop an endpoint
        self.billing = Endpoint("Billing", dsn, settings=PLAIN)
        self.mailer = Endpoint("Mailer", dsn, settings=PLAIN)
        self.web = Endpoint("Shop.Web", dsn, settings=PLAIN, instance="node-1")
        self.invoicing = Endpoint("Invoicing", dsn, settings=PLAIN, schemas={"Invoicing": LEGACY})
        self.feed = Endpoint("Partner.Feed", dsn, send_only=True, serializers=Serializers(RawSerializer()))
        self.all = [self.sales, self.strange, self.billing, self.mailer, self.web, self.invoicing, self.feed]

    def set_up(self) -> None:
        with self.sales.connect() as connection:
            connection.run(f'create schema "{LEGACY}"')
        for endpoint in self.all:
            endpoint.create_queues()
        self.mailer.subscribe("Wire.Messages.Events.OrderPlaced")
        self.billing.subscribe("Wire.Messages.Events.IOrderEvent")

    def close(self) -> None:
        for endpoint in self.all:
            endpoint.stop()
