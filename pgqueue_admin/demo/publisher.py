"""The customers of the demo shop: an order every few seconds, a price now and then, and sometimes trouble."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

from pgqueue_admin.demo import contracts
from pgqueue_admin.demo.simulated_failures import STRICT_CARRIER
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.processes.registry import ProcessContext

MEAN_SECONDS = 2.0  # between two customers; an order makes five messages
FIRST_TROUBLE, TROUBLE_EVERY = 3, 120  # in customers: a new shop has a dead message within seconds

_PEOPLE = ("Ada Lund", "Chidi Okafor", "Mirela Popa", "Zoë Bertrand", "Hana Sato", "Łukasz Nowak", "Inés Ferrer")
_GOODS = {"Lamp": 39.90, "Kettle": 24.50, "Notebook": 4.20, "Blanket": 59.00, "Teapot": 31.75, "Chair": 129.00}
_CARRIERS = ("Parcelways", "Northbound", "Pigeon & Sons")


def run(web: ProcessContext) -> None:
    """Simulate customers until the process ends; none while the endpoint is paused."""
    chance, customers = random.Random(), visits(random.Random())
    while not web.stopping.wait(chance.expovariate(1 / MEAN_SECONDS)):
        if not web.paused:
            _serve(web.endpoint, next(customers))


def _serve(web: Endpoint, visit: "Visit") -> None:
    try:
        visit(web)
    except DatabaseError:
        return  # the engine reports the outage; this customer comes back another day


Visit = Callable[[Endpoint], object]


def visits(chance: random.Random) -> Iterator[Visit]:
    """Yield visits: at fixed intervals a failing order, each kind in turn; else orders and some price requests."""
    first = datetime.now(UTC).strftime("%j%H%M%S")
    for number in count(1):
        order = _order(f"{first}-{number}", chance)
        trouble, place = divmod(number - FIRST_TROUBLE, TROUBLE_EVERY)
        if place == 0:
            yield (_suspicious(order), _for_strict_carrier(order), _unreadable(order))[trouble % 3]
        elif chance.random() < 0.2:
            yield _price(order)
        else:
            yield _place(order)


def _order(number: str, chance: random.Random) -> dict[str, Any]:
    goods = chance.sample(sorted(_GOODS), chance.randint(1, 3))
    pieces = {item: chance.randint(1, 3) for item in goods}
    return {
        "order": number,
        "customer": chance.choice(_PEOPLE),
        "lines": [{"item": item, "pieces": pieces[item], "price": _GOODS[item]} for item in goods],
        "total": round(sum(pieces[item] * _GOODS[item] for item in goods), 2),
        "carrier": chance.choice(_CARRIERS),
        "placed_at": datetime.now(UTC).isoformat(),
    }


def _place(order: dict[str, Any]) -> Visit:
    return lambda web: web.send(contracts.queue(contracts.ORDERS), order, type=contracts.PLACE_ORDER)


def _suspicious(order: dict[str, Any]) -> Visit:
    return _place({**order, "suspicious": True})


def _for_strict_carrier(order: dict[str, Any]) -> Visit:
    return _place({**order, "carrier": STRICT_CARRIER})


def _unreadable(order: dict[str, Any]) -> Visit:
    """An order with a truncated body: every attempt fails to parse it."""
    body = f'{{"order": "{order["order"]}", "customer": "{order["customer"]}", "lines": [{{"item": '.encode()
    return lambda web: web.send(contracts.queue(contracts.ORDERS), body, type=contracts.PLACE_ORDER)


def _price(order: dict[str, Any]) -> Visit:
    request = {"item": order["lines"][0]["item"], "customer": order["customer"]}
    lives = contracts.QUOTE_LIVES
    return lambda web: web.send(contracts.queue(contracts.ORDERS), request, type=contracts.QUOTE_PRICE, ttbr=lives)
