"""Names, queues and message types that the demo's endpoints share."""

from datetime import timedelta

SCHEMA = "demo"
ORDERS, BILLING, SHIPPING, WEB = "Demo.Orders", "Demo.Billing", "Demo.Shipping", "Demo.Web"
ENDPOINTS = (ORDERS, BILLING, SHIPPING, WEB)
ERROR_QUEUE = f'"{SCHEMA}"."error"'
AUDIT_QUEUE = f'"{SCHEMA}"."audit"'

PLACE_ORDER = "Demo.Messages.PlaceOrder"
QUOTE_PRICE = "Demo.Messages.QuotePrice"
CHARGE_CARD = "Demo.Messages.ChargeCard"
SHIP_ORDER = "Demo.Messages.ShipOrder"
ORDER_ACCEPTED = "Demo.Messages.OrderAccepted"
PRICE_QUOTED = "Demo.Messages.PriceQuoted"
ORDER_SHIPPED = "Demo.Messages.OrderShipped"  # an event

QUOTE_LIVES = timedelta(seconds=20)  # T3: no customer waits longer for a price
COPIES_LIVE = timedelta(hours=6)  # of audit copies: history has read them long before


def queue(endpoint: str) -> str:
    """An endpoint's address as headers have it; its name has a dot, so the quotes are needed."""
    return f'"{SCHEMA}"."{endpoint}"'
