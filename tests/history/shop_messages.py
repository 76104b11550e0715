"""Messages that writers archive: timed ones of a shop, some of which fail, are retried, and succeed or die again."""

import random
from datetime import datetime, timedelta
from uuid import UUID

from pgqueue_admin.archive.messages import RETRIED_FROM, DeadMessage
from pgqueue_admin.models import database_clock
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time

ENDPOINTS = ("Torture.Billing", "Torture.Sales", "Torture.Shipping")  # each with a queue of its name
TYPES = ("Torture.CancelOrder", "Torture.PlaceOrder")
RETRIED = (RETRIED_FROM, "NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId")
_FAILURES = (
    ("Torture.CardRefused", "Card {} was refused", "   at Torture.Orders.Charge(Card card) in /src/Orders.cs:line 7"),
    ("Torture.TooLate", "Order {} is {} days late", "   at Torture.Orders.Ship(Order order) in /src/Orders.cs:line 9"),
    ("Torture.NoStock", "", "   at Torture.Stock.Take(Item item) in /src/Stock.cs:line 3"),
)
_DAY = timedelta(days=1)


class ShopMessages:
    """``decides`` alone determines the order; only the end times, now or yesterday, come from the clock."""

    def __init__(self, decides: random.Random):
        self._random = decides
        self._failed: list[str] = []  # ids, including rolled-back ones: their sender does not know

    def next(self, may_fail: bool) -> DeadMessage:
        retried = bool(self._failed) and self._random.random() < 0.3
        message_id = self._random.choice(self._failed) if retried else str(UUID(int=self._random.getrandbits(128)))
        if may_fail and self._random.random() < 0.4:
            self._failed.append(message_id)
            return self._message(message_id, retried, *self._random.choice(_FAILURES))
        return self._message(message_id, retried)

    def _message(
        self, message_id: str, retried: bool, exception: str = "", says: str = "", at: str = ""
    ) -> DeadMessage:
        endpoint, kind = (names[int(message_id[0], 16) % len(names)] for names in (ENDPOINTS, TYPES))
        ended = database_clock.now() - _DAY * (self._random.random() < 0.2)
        timed = self._random.random() < 0.9
        started, sent = self._before(ended) if timed else (None, None)
        times = {h.TIME_SENT: sent, "NServiceBus.ProcessingStarted": started, "NServiceBus.ProcessingEnded": ended}
        headers: h.Headers = {h.MESSAGE_ID: message_id, h.ENCLOSED_MESSAGE_TYPES: f"{kind}, Torture, Version=1.0.0.0"}
        headers |= {name: wire_time(time) for name, time in times.items() if time}
        headers |= {self._random.choice(RETRIED): "1"} if retried else {}
        number = self._random.randrange(10_000)
        return DeadMessage(
            queue=endpoint, endpoint=endpoint, message_id=message_id, message_type=kind, headers=h.dump(headers),
            result="failed" if exception else "success", exception_type=exception or None,
            exception_message=says.format(number, number) if exception else None, stack_trace=at or None,
            sent_at=sent, died_at=ended,
        )  # fmt: skip

    def _before(self, ended: datetime) -> tuple[datetime, datetime]:
        """When it started and was sent: a moment, a second or a minute before; rarely by a wrong clock."""
        worked = timedelta(milliseconds=self._random.expovariate(1 / 40))
        waited = timedelta(milliseconds=self._random.choice([0.4, 300.0, 300.0, 90_000.0]) * self._random.random())
        skewed = self._random.random() < 0.05
        return ended - worked, ended - worked + (waited if skewed else -waited)
