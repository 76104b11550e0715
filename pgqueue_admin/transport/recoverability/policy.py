"""Decides what happens to a failed message: retry at once, retry later, or give up (wire sheet 8.1)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.recoverability_actions import Action, After, Exhaust, Immediately
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.wire import delivery_delay
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import stamped
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.wire_times import parse_time, wire_time

# Delayed retries: a message that keeps failing is retried after growing delays (wire sheet 8.1).
_COUNT = re.compile(r"[\t-\r ]*\+?0*(\d{1,10})[\t-\r ]*\0*", re.ASCII)  # as .NET reads an int; Python accepts more
_MOST = 2**31 - 1
LONGEST = timedelta(days=1)  # since the last delayed retry: an older message was neglected


def may_come_back(message: IncomingMessage, failure: Failure, settings: EndpointSettings, now: datetime) -> bool:
    """Whether a delayed retry is left; there is none if the last one is longer ago than ``LONGEST``."""
    if not failure.recoverable or done(message) >= settings.delayed_retries:
        return False
    last = parse_time(message.headers.get(h.RETRIES_TIMESTAMP))
    return last is None or now - last <= LONGEST


def done(message: IncomingMessage) -> int:
    """Number of past delayed retries; 0 if endpoints read the header as no number, or a negative one."""
    said = _COUNT.fullmatch(message.headers.get(h.RETRIES) or "")
    number = int(said[1]) if said else 0
    return number if number <= _MOST else 0


def later(message: IncomingMessage, delay: timedelta, own_address: str) -> OutgoingMessage:
    """The message for the endpoint's delayed table. An earlier DeliverAt is kept."""
    now, number = datetime.now(UTC), done(message) + 1
    sent_on = stamped(message.headers, wire_time(now))
    kept = {name: value for name, value in sent_on.items() if name != h.FL_RETRIES}
    counted: h.Headers = {
        h.MESSAGE_ID: message.message_id,
        h.RETRIES: str(number),
        h.RETRIES_TIMESTAMP: wire_time(now),
        **h.of_its_own_trace(message.headers),
    }
    headers = delivery_delay.headers(kept | counted, delay, own_address, since=now)
    return OutgoingMessage(message.queue, headers, message.body, delay=delay)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The input of a policy. ``failure.attempts`` counts immediate attempts, this one included."""

    message: IncomingMessage
    failure: Failure
    settings: EndpointSettings

    @property
    def delayed_retries(self) -> int:
        """Number of past delayed retries."""
        return done(self.message)


Policy = Callable[[FailedAttempt], Action]


def standard(attempted: FailedAttempt) -> Action:
    """The settings' rule: immediate retries, then delayed ones, each delayed a step longer."""
    message, failure, settings = attempted.message, attempted.failure, attempted.settings
    if failure.recoverable and failure.attempts <= settings.immediate_retries:
        return Immediately()
    if may_come_back(message, failure, settings, datetime.now(UTC)):
        return After(timedelta(seconds=settings.delayed_retry_step * (attempted.delayed_retries + 1)))
    return Exhaust()


def decide(policy: Policy, attempted: FailedAttempt) -> Action:
    """Apply the policy, but never retry an unrecoverable failure."""
    action = policy(attempted)
    again = isinstance(action, Immediately | After)
    return Exhaust() if again and not attempted.failure.recoverable else action
