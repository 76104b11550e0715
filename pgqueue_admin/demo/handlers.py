"""The handlers of the demo shop: orders are charged, then shipped, and the web site hears of it."""

import random
import time
from typing import Any

from pgqueue_admin.demo import auditor, publisher, shop, trouble
from pgqueue_admin.transport import MessageContext
from pgqueue_admin.workers.registry import endpoint

orders, billing = endpoint(shop.ORDERS), endpoint(shop.BILLING)
shipping, web = endpoint(shop.SHIPPING), endpoint(shop.WEB)
web.companion(publisher.run)
web.companion(auditor.run)

Message = dict[str, Any]
_chance = random.Random()


def work(least: float, most: float) -> None:
    """Handlers take their time, or nothing would ever be seen in flight."""
    time.sleep(_chance.uniform(least, most))


@orders.handle(shop.PLACE_ORDER)
def place_order(order: Message, context: MessageContext) -> None:
    work(0.01, 0.05)
    context.send(shop.queue(shop.BILLING), order, type=shop.CHARGE_CARD)
    context.reply({"order": order["order"]}, type=shop.ORDER_ACCEPTED)


@orders.handle(shop.QUOTE_PRICE)
def quote_price(request: Message, context: MessageContext) -> None:
    work(0.01, 0.05)
    context.reply({**request, "price": 49.90}, type=shop.PRICE_QUOTED, ttbr=shop.QUOTE_LIVES)


@billing.handle(shop.CHARGE_CARD)
def charge_card(order: Message, context: MessageContext) -> None:
    work(0.1, 0.4)
    trouble.fraud_check(order, context)
    trouble.flaky_gateway(_chance)
    context.send(shop.queue(shop.SHIPPING), order, type=shop.SHIP_ORDER)


@shipping.handle(shop.SHIP_ORDER)
def ship_order(order: Message, context: MessageContext) -> None:
    work(0.05, 0.2)
    trouble.carrier(order, context)
    context.publish({"order": order["order"], "carrier": order["carrier"]}, type=shop.ORDER_SHIPPED)


@web.handle(shop.ORDER_ACCEPTED, shop.PRICE_QUOTED, shop.ORDER_SHIPPED)
def show_customer(news: Message, context: MessageContext) -> None:
    work(0.0, 0.01)
