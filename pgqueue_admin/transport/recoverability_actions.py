"""The actions that a recoverability policy can choose (wire sheet 8.1)."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Immediately:
    """Handle it again at once."""


@dataclass(frozen=True, slots=True)
class After:
    """Handle it again later; it waits in the delayed table."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Exhaust:
    """Dead-letter it, as the settings say or into this error queue."""

    error_queue: str = ""


@dataclass(frozen=True, slots=True)
class Discard:
    """Drop it, logging this reason."""

    reason: str


Action = Immediately | After | Exhaust | Discard
