"""One source's data on one copy of a message. Nothing is inferred here; texts are untrusted."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SightingSource(StrEnum):
    QUEUE = "live queue"
    DELAYED = "delayed"
    ERRORS = "error queue"
    AUDIT = "audit queue"
    ARCHIVE = "archive"
    HISTORY = "history"
    PEOPLE = "people"
    CONCLUDED = "concluded"


DEAD = ("dead", "failed")  # in the archive, in an error queue
WAITING = ("overdue", "ready", "expired", "in flight", "delayed")
OVER = ("succeeded", "handled", "discarded")
UNKNOWN = ("retried", "died again", "failed before", "not known")


@dataclass(frozen=True, slots=True)
class SightingAct:
    """A person's act on an archived message, or an event by itself."""

    at: datetime | None
    who: str
    verb: str
    operation: int | None = None
    target: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """``place``: the endpoint or queue that handles it; ``state``: from one of the four groups above.

    ``sent_at`` is by the sender's clock; ``started_at``, ``ended_at`` and ``failed_at`` by the handler's; ``at``, from
    the archive and queues, by the database's.
    """

    source: SightingSource
    message_id: str
    place: str
    state: str
    type: str = ""
    is_event: bool = False
    where: str = ""
    link: str = ""
    queue_link: str = ""
    at: datetime | None = None
    sender: str = ""
    sender_host: str = ""
    host: str = ""
    related_to: str = ""
    edit_of: str = ""
    sent_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failed_at: datetime | None = None
    attempts: int | None = None
    cause: str = ""
    acts: tuple[SightingAct, ...] = ()
