"""The function that decides what becomes of a message that failed (wire sheet 8.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.recoverability import delayed_retries
from pgqueue_admin.transport.recoverability_actions import Action, After, Exhaust, Immediately
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.wire.message import IncomingMessage


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What a policy judges by. ``failure.attempts`` counts the immediate ones, this one included."""

    message: IncomingMessage
    failure: Failure
    settings: EndpointSettings

    @property
    def delayed_retries(self) -> int:
        """How many delayed retries it has behind it."""
        return delayed_retries.done(self.message)


Policy = Callable[[FailedAttempt], Action]


def standard(attempted: FailedAttempt) -> Action:
    """As the settings say: immediate retries, then delayed ones, each a step later than the one before."""
    message, failure, settings = attempted.message, attempted.failure, attempted.settings
    if failure.recoverable and failure.attempts <= settings.immediate_retries:
        return Immediately()
    if delayed_retries.may_come_back(message, failure, settings, datetime.now(UTC)):
        return After(timedelta(seconds=settings.delayed_retry_step * (attempted.delayed_retries + 1)))
    return Exhaust()


def decide(policy: Policy, attempted: FailedAttempt) -> Action:
    """What cannot be tried again is not, whatever the policy says."""
    action = policy(attempted)
    again = isinstance(action, Immediately | After)
    return Exhaust() if again and not attempted.failure.recoverable else action
