"""An endpoint's settings: an immutable value, validated as a whole, applied while it runs."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pgqueue_admin.formatting import warnings
from pgqueue_admin.transport.ports import MakeOutbox
from pgqueue_admin.transport.wire.wire_times import LONGEST_SPAN, SHORTEST_SPAN

log = logging.getLogger("pgqueue_admin.transport")
LEAST_PEEK_DELAY = 0.1
MOST_PEEK_DELAY = 10.0
LONGEST_PEEK_DELAY = 86_400.0
LONGEST_RETRY_STEP = 86_400.0
LEAST_AUDIT_TTBR, MOST_AUDIT_TTBR = SHORTEST_SPAN.total_seconds(), LONGEST_SPAN.total_seconds()

TransactionMode = Literal["sends_atomic_with_receive", "receive_only", "none"]
Repeek = Literal["receives", "handlers"]
OnExhausted = Literal["archive", "error_queue"]

_CHOICES = {
    "transaction_mode": ("sends_atomic_with_receive", "receive_only", "none"),
    "repeek_after": ("receives", "handlers"),
    "on_exhausted": ("archive", "error_queue"),
}

_NUMBERS: dict[type | tuple[type, ...], tuple[str, ...]] = {
    int: ("max_records_to_peek", "concurrency", "immediate_retries", "delayed_retries", "batch_size"),
    (int, float): ("peek_delay", "delayed_retry_step", "audit_ttbr"),
}
_MAY_BE_NONE = ("max_records_to_peek", "audit_ttbr")


class SettingsRefused(ValueError):
    """The settings are invalid; the message names every fault."""

    def __init__(self, faults: list[str]):
        self.faults = faults
        super().__init__("\n".join(faults))


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """How an endpoint receives. Which values to choose: docs/how-to/tune.md."""

    # Above each field: its meaning, as docs/reference/engine-api.md has it.
    # Seconds between peeks of an idle queue (T14). Below 0.1 or above 10: a warning (T15). Longer than a TTBR: such
    # messages are lost (T16).
    peek_delay: float = 1.0
    # Most receives that one peek starts (T17); None: as many as it counted.
    max_records_to_peek: int | None = None
    # Most messages in flight (T11). Default: the processors, at least 2.
    concurrency: int = max(2, os.cpu_count() or 2)
    # Retries at once, counted per process.
    immediate_retries: int = 5
    # Delayed retries, each with as many immediate attempts again.
    delayed_retries: int = 3
    # Seconds: the first waits one step, the second two, the third three.
    delayed_retry_step: float = 10.0
    # `archive` or `error_queue`; without an archive (`exhausted=`) always the error queue.
    on_exhausted: OnExhausted = "archive"
    # An address; not the endpoint's own queue.
    error_queue: str = "error"
    # An address that gets a copy of each handled message; empty: none.
    audit_queue: str = ""
    # Seconds until such a copy expires; None: never.
    audit_ttbr: float | None = None
    # An address; empty: SubscriptionRouting in the endpoint's schema. Publishers and subscribers must agree on one, or
    # events are silently lost.
    subscription_table: str = ""
    # `sends_atomic_with_receive`, `receive_only` or `none`.
    transaction_mode: TransactionMode = "sends_atomic_with_receive"
    # Messages a receive transaction, each in a savepoint.
    batch_size: int = 1
    # Peek again when `receives` have answered, or when `handlers` are done (T12).
    repeek_after: Repeek = "receives"
    # Send and hear NOTIFY of new messages; nothing is lost without it.
    notify: bool = True
    # `Outbox(…)` of `pgqueue_admin.outbox`, with `receive_only`: effects happen once. None: no outbox.
    outbox: MakeOutbox | None = None
    # Refuse a peek delay that is otherwise only warned about (T15).
    strict_peek_range: bool = False
    # `create_queues()` adds the column `bodystring`: ASCII as text, else octal (T6). Rewrites tables that have rows.
    create_message_body_computed_column: bool = False
    # Delete what has expired in its queue each time it starts, before it receives; how much is logged. Otherwise such
    # messages are dropped one by one as they are received.
    purge_expired_at_start: bool = False

    def faults(self) -> list[str]:
        """All faults, as sentences. Values of a wrong type are reported first and alone."""
        return list(self._type_faults()) or [
            *self._range_faults(),
            *self._choice_faults(),
            *self._combination_faults(),
        ]

    def checked(self) -> "EndpointSettings":
        """Return itself. Raises SettingsRefused."""
        if faults := self.faults():
            raise SettingsRefused(faults)
        return self

    def _type_faults(self) -> Iterator[str]:
        """Faults of types: other checks compare numbers."""
        for kinds, names in _NUMBERS.items():
            for name in names:
                value = getattr(self, name)
                if value is None and name in _MAY_BE_NONE:
                    continue
                if not isinstance(value, kinds) or isinstance(value, bool):
                    yield f"{name} is {value!r}: it must be a {'whole ' if kinds is int else ''}number."

    def _range_faults(self) -> Iterator[str]:
        if not 0 < self.peek_delay <= LONGEST_PEEK_DELAY:
            yield f"peek_delay is {self.peek_delay:g} s: it must be more than 0, and at most a day."
        elif self.strict_peek_range and not LEAST_PEEK_DELAY <= self.peek_delay <= MOST_PEEK_DELAY:
            yield (
                f"peek_delay is {self.peek_delay:g} s: with strict_peek_range it must be "
                f"from {LEAST_PEEK_DELAY:g} s to {MOST_PEEK_DELAY:g} s."
            )
        if self.max_records_to_peek is not None and self.max_records_to_peek < 1:
            yield f"max_records_to_peek is {self.max_records_to_peek}: it must be 1 or more, or None for no limit."
        if self.concurrency < 1:
            yield f"concurrency is {self.concurrency}: it must be 1 or more. To receive nothing, pause the endpoint."
        if self.batch_size < 1:
            yield f"batch_size is {self.batch_size}: it must be 1 or more."
        if self.audit_ttbr is not None and not LEAST_AUDIT_TTBR <= self.audit_ttbr <= MOST_AUDIT_TTBR:
            yield (
                f"audit_ttbr is {self.audit_ttbr:g} s: it must be more than 0 (at least {LEAST_AUDIT_TTBR:g} s, "
                f"at most {LONGEST_SPAN.days:,} days), or None for copies that never expire."
            )
        if self.immediate_retries < 0:
            yield f"immediate_retries is {self.immediate_retries}: it must be 0 or more."
        if self.delayed_retries < 0:
            yield f"delayed_retries is {self.delayed_retries}: it must be 0 or more."
        if not 0 <= self.delayed_retry_step <= LONGEST_RETRY_STEP:
            yield (
                f"delayed_retry_step is {self.delayed_retry_step:g} s: it must be from 0 to {LONGEST_RETRY_STEP:g} s, "
                "since a message whose last delayed retry is older than a day gets no other."
            )

    def _choice_faults(self) -> Iterator[str]:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                yield f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(choices)}."

    def _combination_faults(self) -> Iterator[str]:
        retries = {"immediate_retries": self.immediate_retries, "delayed_retries": self.delayed_retries}
        for name in [name for name, number in retries.items() if self.transaction_mode == "none" and number > 0]:
            yield (
                f"transaction_mode is none and {name} is {retries[name]}: a message that is deleted before its handler "
                f"runs cannot be retried. Set {name} to 0, or another mode."
            )
        if self.transaction_mode == "none" and self.batch_size > 1:
            yield (
                f"transaction_mode is none and batch_size is {self.batch_size}: a crash would lose messages whose "
                "handlers have not begun. Set batch_size to 1, or another mode."
            )
        if self.outbox:
            yield from self._outbox_faults(self.outbox)
        if self.audit_ttbr is not None and not self.audit_queue:
            yield "audit_ttbr is set and audit_queue is empty: name the queue whose copies are to expire."
        if not self.error_queue:
            yield "error_queue is empty: it must name a queue."

    def _outbox_faults(self, outbox: MakeOutbox) -> Iterator[str]:
        if self.transaction_mode == "sends_atomic_with_receive":
            yield (
                "transaction_mode is sends_atomic_with_receive and there is an outbox: what it was to send could be "
                "rolled back with the receive. Choose receive_only, or leave the outbox out: handlers that write by "
                "context.connection need none."
            )
        if self.batch_size > 1:
            yield f"batch_size is {self.batch_size} and there is an outbox: each message has a record of its own."
        yield from outbox.faults()


def warn_of_peek_delay(endpoint: str, settings: EndpointSettings) -> None:
    """T15: warn in the endpoint's log, in the words of pages and checks."""
    milliseconds = round(settings.peek_delay * 1000)
    if settings.peek_delay > MOST_PEEK_DELAY:
        log.warning("%s: %s", endpoint, warnings.peek_too_long(milliseconds, ours=True).sentence)
    elif settings.peek_delay < LEAST_PEEK_DELAY:
        log.warning("%s: %s", endpoint, warnings.peek_too_short(milliseconds, ours=True).sentence)
