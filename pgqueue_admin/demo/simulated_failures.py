"""Simulated failures of the shop. A message that a person retries succeeds: somebody has looked at it."""

import random

from pgqueue_admin.archive.messages import RETRIED_FROM
from pgqueue_admin.transport import MessageContext

FLAKY = 0.08  # share of all attempts; the next attempt usually succeeds
STRICT_CARRIER = "Slowpost"


class GatewayTimeout(Exception):
    """The card gateway did not answer in time."""


class HeldByFraudCheck(Exception):
    """An order that a person has to release."""


class AddressUnclear(Exception):
    """A parcel that a person has to look at."""


def flaky_gateway(chance: random.Random) -> None:
    if chance.random() < FLAKY:
        raise GatewayTimeout("gateway.cards.example did not answer within 2 s")


def fraud_check(order: dict[str, object], context: MessageContext) -> None:
    if order.get("suspicious") and not looked_at(context):
        raise HeldByFraudCheck(f"order {order['order']} over {order['total']} is held until a person retries it")


def carrier(parcel: dict[str, object], context: MessageContext) -> None:
    if parcel["carrier"] == STRICT_CARRIER and not looked_at(context):
        raise AddressUnclear(f"{STRICT_CARRIER} cannot read the address of order {parcel['order']}")


def looked_at(context: MessageContext) -> bool:
    return RETRIED_FROM in context.headers
