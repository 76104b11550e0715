"""Handlers of the demo shop: orders are charged, then shipped, and the web site is notified."""

import random
import time
from typing import Any

from pgqueue_admin.demo import audit_drain, contracts, publisher, simulated_failures
from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.processes.registry import endpoint

orders, billing = endpoint(contracts.ORDERS), endpoint(contracts.BILLING)
shipping, web = endpoint(contracts.SHIPPING), endpoint(contracts.WEB)
web.companion(publisher.run)
web.companion(audit_drain.run)

Message = dict[str, Any]
_chance = random.Random()


def work(least: float, most: float) -> None:
    """Sleep, so that messages can be seen in flight."""
    time.sleep(_chance.uniform(least, most))


@orders.handle(contracts.PLACE_ORDER)
def place_order(order: Message, context: MessageContext) -> None:
    work(0.01, 0.05)
    context.send(contracts.queue(contracts.BILLING), order, type=contracts.CHARGE_CARD)
    context.reply({"order": order["order"]}, type=contracts.ORDER_ACCEPTED)


@orders.handle(contracts.QUOTE_PRICE)
def quote_price(request: Message, context: MessageContext) -> None:
    work(0.01, 0.05)
    context.reply({**request, "price": 49.90}, type=contracts.PRICE_QUOTED, ttbr=contracts.QUOTE_LIVES)


@billing.handle(contracts.CHARGE_CARD, trial=True)
def charge_card(order: Message, context: MessageContext) -> None:
    work(0.1, 0.4)
    simulated_failures.fraud_check(order, context)
    simulated_failures.flaky_gateway(_chance)
    context.send(contracts.queue(contracts.SHIPPING), order, type=contracts.SHIP_ORDER)


@shipping.handle(contracts.SHIP_ORDER, trial=True)
def ship_order(order: Message, context: MessageContext) -> None:
    work(0.05, 0.2)
    simulated_failures.carrier(order, context)
    context.publish({"order": order["order"], "carrier": order["carrier"]}, type=contracts.ORDER_SHIPPED)


@web.handle(contracts.ORDER_ACCEPTED, contracts.PRICE_QUOTED, contracts.ORDER_SHIPPED)
def show_customer(news: Message, context: MessageContext) -> None:
    work(0.0, 0.01)
