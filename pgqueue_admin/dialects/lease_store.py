"""Protocol of the lease queue: messages are locked for a time, and end in an archive."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Connection

QUEUE = Address("messages", "message")
Result = Literal["success", "rejected", "failed", "lock_expired"]


class Lease(NamedTuple):
    """A locked message, and the token of its holder.

    ``message``: JSON as text, of any depth and size. ``attempts``: number of claims, this one included.
    ``expires_at``: end of the lock by the database's clock, as of the claim.
    """

    id: int
    token: str
    created_at: datetime
    message: str
    attempts: int
    expires_at: datetime


class Ending(NamedTuple):
    """How to end a message. Texts contain no NUL and no lone surrogate."""

    id: int
    token: str
    result: Result
    details: str | None = None
    message_type: str | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    stack_trace: str | None = None


class Ended(NamedTuple):
    """How it ended: *lock_expired* if its lock had expired. ``archive_id``: None if a success is not archived."""

    id: int
    result: Result
    archive_id: int | None


class Expired(NamedTuple):
    """Number of messages with expired locks that were archived and released."""

    archived: int
    released: int


class Outlook(NamedTuple):
    """Seconds until the next message can be claimed, and until the next lock expires: negative if that is past, None if
    no message waits, or none is locked.
    """

    claim_in: float | None
    expire_in: float | None

    @property
    def can_claim(self) -> bool:
        return self.claim_in is not None and self.claim_in <= 0

    @property
    def can_expire(self) -> bool:
        return self.expire_in is not None and self.expire_in <= 0

    @property
    def is_empty(self) -> bool:
        return self.claim_in is None and self.expire_in is None


class DeadLease(NamedTuple):
    """A dead message for a dead-message handler. ``given``: number of deliveries, this one included.

    ``result`` and all fields after it come from its archive row; None if that is gone.
    """

    archive_id: int
    given: int
    message: str | None
    message_id: str | None
    result: Result | None
    details: str | None
    exception_type: str | None
    exception_message: str | None
    handled_by: str | None
    attempts: int | None
    created_at: datetime | None
    archived_at: datetime | None


class HandEnding(NamedTuple):
    """How a person ends a message. Texts contain no NUL and no lone surrogate."""

    result: Literal["rejected", "failed"]
    who: str
    details: str


class LeaseStore(Protocol):
    """Each call is one statement, independent of the session's search path and time zone."""

    def is_installed(self, session: Connection) -> bool:
        """Whether its tables exist in the form that this program knows."""

    def publish(self, session: Connection, messages: Sequence[str]) -> list[int]:
        """Insert JSON texts in this order; return their ids."""

    def claim(self, session: Connection, most: int, seconds: float, releases: int = 0, holder: str = "") -> list[Lease]:
        """Lock at most so many due, unlocked messages. Expired locks are left to ``expire``.

        ``releases``: up to this attempt, a message is released and not archived if the lock expires.
        ``holder``: the claimer's name, for readers; stored if the tables are of version 10.
        """

    def renew(self, session: Connection, leases: Sequence[tuple[int, str]], seconds: float) -> set[str]:
        """Extend locks to so many seconds from now; return the tokens of those still held."""

    def finish(
        self,
        session: Connection,
        endings: Sequence[Ending],
        handled_by: str,
        machine: str,
        archive_success: bool = True,
    ) -> list[Ended]:
        """Delete and archive messages that are still held by their tokens, in one statement."""

    def release(self, session: Connection, lease: tuple[int, str], after: float | datetime = 0) -> bool:
        """Release a message for another attempt, in so many seconds or at that time. False: no longer held."""

    def release_seen(self, session: Connection, id: int, seen: str) -> bool:
        """Release by hand, if the lock is still the one that the person saw. False: nothing was done."""

    def end_seen(self, session: Connection, id: int, seen: str, ending: HandEnding) -> int | None:
        """End a message by hand, if its lock, or lack of one, is still as the person saw it; return its archive id."""

    def seen_now(self, session: Connection, id: int) -> str | None:
        """The message's present lock, empty without one; None if the message is gone."""

    def expire(self, session: Connection, most: int, handled_by: str) -> Expired:
        """Archive or release messages with expired locks; skip rows locked by another transaction."""

    def renotify(self, session: Connection, most: int) -> int:
        """NOTIFY again for so many unprocessed messages, the next ones at each call; return how many."""

    def outlook(self, session: Connection) -> Outlook:
        """When the next message can be claimed, and when the next lock expires."""

    def ask_for_dead(self, session: Connection) -> None:
        """Start keeping dead messages for dead-message handlers."""

    def claim_dead(self, session: Connection, most: int, seconds: float) -> list[DeadLease]:
        """Claim at most so many free dead messages; each is delivered again after ``seconds``, unless ended."""

    def end_dead(self, session: Connection, archive_id: int) -> None:
        """Do not deliver it again."""

    def delay_dead(self, session: Connection, archive_id: int, seconds: float) -> None:
        """Deliver it again after so many seconds."""

    def dead_due_in(self, session: Connection) -> float | None:
        """Seconds until the next dead message can be claimed, negative if one can be now; None without one."""
