"""A warning kind's finding at this moment; evaluation turns findings into Alert rows."""

from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.formatting.warnings import WarningText

CRITICAL = "critical"
WARNING = "warning"
LONGEST = 400  # characters of an Alert's columns; a message type's name may be longer


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. Kind, subject and cause identify it over time."""

    kind: str
    subject: str
    said: WarningText
    severity: str = WARNING
    cause: str = ""
    queue: str = ""  # canonical address, if any
    count: int = 0  # of dead messages
    since: datetime | None = None  # None: since found
    told: int | None = None  # of the count, how many were notified; None: all, at their deaths

    def __post_init__(self) -> None:
        """Cut here, so that identity and row agree."""
        for name in ("subject", "cause", "queue"):
            object.__setattr__(self, name, getattr(self, name)[:LONGEST])

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.kind, self.subject, self.cause

    @property
    def sentence(self) -> str:
        """For places without "since": a check, a log line, a form's preview."""
        return self.said.sentence
