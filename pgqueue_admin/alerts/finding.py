"""A finding of a warning kind at this moment; evaluation turns findings into Alert rows."""

from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.formatting.warnings import WarningText

CRITICAL = "critical"
WARNING = "warning"
LONGEST = 400  # as many characters as an Alert's columns keep; a message type's name may be longer


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is off. Kind, subject and cause together say whether it is the same thing as before."""

    kind: str
    subject: str
    said: WarningText
    severity: str = WARNING
    cause: str = ""
    queue: str = ""  # canonical address, where there is one
    count: int = 0  # of what is counted on: dead messages
    since: datetime | None = None  # None: since it was found
    told: int | None = None  # of the count, when it is found; None: all of it, somebody was told when they died

    def __post_init__(self) -> None:
        """Cut here, so that identity and row agree."""
        for name in ("subject", "cause", "queue"):
            object.__setattr__(self, name, getattr(self, name)[:LONGEST])

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.kind, self.subject, self.cause

    @property
    def sentence(self) -> str:
        """For where there is no "since": a check, a log line, a form's preview."""
        return self.said.sentence
